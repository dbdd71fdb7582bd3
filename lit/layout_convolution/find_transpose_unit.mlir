// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @ones
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: 2, 1, 1, 5>}
func.func @ones(%x: tensor<2x5x1x1xf32>) -> tensor<2x1x1x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x5x1x1xf32>) -> tensor<2x1x1x5xf32>
  return %0 : tensor<2x1x1x5xf32>
}

// -----

// CHECK-LABEL: @data
// CHECK-NEXT: migraphx.transpose
func.func @data(%x: tensor<2x5x1x3xf32>) -> tensor<2x1x3x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x5x1x3xf32>) -> tensor<2x1x3x5xf32>
  return %0 : tensor<2x1x3x5xf32>
}
