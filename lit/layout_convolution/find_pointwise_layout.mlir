// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @both
// CHECK-NEXT: %[[A:.*]] = "migraphx.add"(%arg0, %arg1)
// CHECK-NEXT: "migraphx.transpose"(%[[A]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @both(%x: tensor<1x4x5x2xf32>, %y: tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.transpose"(%y) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x2x4x5xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  return %2 : tensor<1x2x4x5xf32>
}

// -----

// A bias is repeated in the new order.
// CHECK-LABEL: @bias
// CHECK: %[[B:.*]] = "migraphx.broadcast"(%arg1) {axis = 3 : i64, {{.*}}out_lens = array<i64: 1, 4, 5, 2>
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0, %[[B]])
func.func @bias(%x: tensor<1x4x5x2xf32>, %b: tensor<2xf32>) -> tensor<1x2x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.broadcast"(%b) {axis = 1 : i64, out_lens = array<i64: 1, 2, 4, 5>} : (tensor<2xf32>) -> tensor<1x2x4x5xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x2x4x5xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  return %2 : tensor<1x2x4x5xf32>
}

// -----

// The other operand would have to be transposed.
// CHECK-LABEL: @input
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0)
// CHECK-NEXT: "migraphx.add"(%[[T]], %arg1)
func.func @input(%x: tensor<1x4x5x2xf32>, %y: tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %2 = "migraphx.add"(%0, %y) : (tensor<1x2x4x5xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  return %2 : tensor<1x2x4x5xf32>
}
