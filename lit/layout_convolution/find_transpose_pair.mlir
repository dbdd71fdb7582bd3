// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @cancel
// CHECK-NEXT: return %arg0
func.func @cancel(%x: tensor<1x4x5x2xf32>) -> tensor<1x4x5x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x5xf32>) -> tensor<1x4x5x2xf32>
  return %1 : tensor<1x4x5x2xf32>
}

// -----

// CHECK-LABEL: @one
// CHECK-NEXT: migraphx.transpose
// CHECK-NEXT: return
func.func @one(%x: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
