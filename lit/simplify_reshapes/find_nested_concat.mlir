// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @same_axis
// CHECK-NEXT: "migraphx.concat"(%arg0, %arg1, %arg0) {axis = 1 : i64}
// CHECK-NEXT: return
func.func @same_axis(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x10xf32> {
  %0 = "migraphx.concat"(%x, %y) {axis = -1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %1 = "migraphx.concat"(%0, %x) {axis = 1 : i64} : (tensor<2x7xf32>, tensor<2x3xf32>) -> tensor<2x10xf32>
  return %1 : tensor<2x10xf32>
}

// -----

// CHECK-LABEL: @other_axis
// CHECK-NEXT: migraphx.concat
// CHECK-NEXT: migraphx.concat
func.func @other_axis(%x: tensor<2x3xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.concat"(%x, %x) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %1 = "migraphx.concat"(%0, %0) {axis = 0 : i64} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}
