// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @compose
// CHECK-NEXT: "migraphx.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>}
// CHECK-NEXT: return
func.func @compose(%x: tensor<?x3x4xf32>) -> tensor<4x?x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<?x3x4xf32>) -> tensor<3x4x?xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 2, 0>} : (tensor<3x4x?xf32>) -> tensor<4x?x3xf32>
  return %1 : tensor<4x?x3xf32>
}

// -----

// CHECK-LABEL: @cancel
// CHECK-NEXT: return %arg0
func.func @cancel(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<?x3xf32>) -> tensor<3x?xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x?xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// Something between them that is no view.
// CHECK-LABEL: @between
// CHECK: transpose
// CHECK: softmax
// CHECK: transpose
func.func @between(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.softmax"(%0) {axis = 0 : i64} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
