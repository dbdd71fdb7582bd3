// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @max
// CHECK-NEXT: return %arg0
func.func @max(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.max"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @min
// CHECK-NEXT: return %arg0
func.func @min(%x: tensor<?x2xui8>) -> tensor<?x2xui8> {
  %0 = "migraphx.min"(%x, %x) : (tensor<?x2xui8>, tensor<?x2xui8>) -> tensor<?x2xui8>
  return %0 : tensor<?x2xui8>
}

// -----

// Near misses: two operands, an op that is not idempotent.
// CHECK-LABEL: @two
// CHECK-NEXT: migraphx.max
func.func @two(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.max"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @add
// CHECK-NEXT: migraphx.add
func.func @add(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
