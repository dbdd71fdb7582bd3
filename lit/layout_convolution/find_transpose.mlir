// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @back
// CHECK-NEXT: return %arg0
func.func @back(%x: tensor<?x3x4x5xf32>) -> tensor<?x3x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<?x3x4x5xf32>) -> tensor<?x4x5x3xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x4x5x3xf32>) -> tensor<?x3x4x5xf32>
  return %1 : tensor<?x3x4x5xf32>
}

// -----

// CHECK-LABEL: @pair
// CHECK-NEXT: "migraphx.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: return
func.func @pair(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// -----

// Near miss: one alone.
// CHECK-LABEL: @lone
// CHECK-NEXT: "migraphx.transpose"(%arg0) {permutation = array<i64: 1, 2, 0>}
func.func @lone(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  return %0 : tensor<3x4x2xf32>
}
