// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// The result has one element a channel: its transpose is a reshape.
// CHECK-LABEL: @plane
// CHECK-NEXT: %[[R:.*]] = "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1, 2>}
// CHECK-NEXT: "migraphx.reshape"(%[[R]]) {dims = array<i64: 1, 2, 1, 1>}
func.func @plane(%x: tensor<1x4x5x2xf32>) -> tensor<1x2x1x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 2, -1>} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x1xf32>
  return %1 : tensor<1x2x1x1xf32>
}

// -----

// CHECK-LABEL: @no_transpose
// CHECK-NEXT: migraphx.reduce_max
// CHECK-NEXT: return
func.func @no_transpose(%x: tensor<1x4x5x2xf32>) -> tensor<1x4x1x1xf32> {
  %1 = "migraphx.reduce_max"(%x) {axes = array<i64: 2, 3>} : (tensor<1x4x5x2xf32>) -> tensor<1x4x1x1xf32>
  return %1 : tensor<1x4x1x1xf32>
}
