// RUN: mgx-opt %s --mgx-split-single-dyn-dim --split-input-file | filecheck %s

// One function for each size, with the types of that size, in the operands and behind.
// CHECK: func.func private @dim_4(%arg0: tensor<4x3xf32>, %arg1: tensor<3x4xf32>) -> tensor<4x4xf32>
// CHECK: "migraphx.dot"(%arg0, %arg1) : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
// CHECK: func.func private @dim_5(%arg0: tensor<5x3xf32>, %arg1: tensor<3x5xf32>) -> tensor<5x5xf32>
// CHECK-LABEL: @main
// CHECK-NEXT: "migraphx.select_module"(%arg0, %arg1) {callees = [@dim_4, @dim_5]}
// CHECK-NEXT: return
func.func @main(%x: tensor<?x3xf32> {migraphx.dims = [{min = 4, max = 5, symbol = "n"}, 3]}, %y: tensor<3x?xf32> {migraphx.dims = [3, {min = 4, max = 5, symbol = "n"}]}) -> tensor<?x?xf32> {
  %0 = "migraphx.dot"(%x, %y) : (tensor<?x3xf32>, tensor<3x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Near misses: no upper bound, two extents that may differ, more sizes than max-sizes.
// CHECK-LABEL: @main
// CHECK-NEXT: migraphx.neg
// CHECK-NOT: migraphx.select_module
func.func @main(%x: tensor<?x3xf32> {migraphx.dims = [{min = 4, symbol = "n"}, 3]}) -> tensor<?x3xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: @main
// CHECK-NEXT: migraphx.dot
// CHECK-NOT: migraphx.select_module
func.func @main(%x: tensor<?x3xf32> {migraphx.dims = [{min = 4, max = 5}, 3]}, %y: tensor<3x?xf32> {migraphx.dims = [3, {min = 4, max = 5}]}) -> tensor<?x?xf32> {
  %0 = "migraphx.dot"(%x, %y) : (tensor<?x3xf32>, tensor<3x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: @main
// CHECK-NEXT: migraphx.neg
// CHECK-NOT: migraphx.select_module
func.func @main(%x: tensor<?x3xf32> {migraphx.dims = [{min = 1, max = 200}, 3]}) -> tensor<?x3xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
