// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @channels
// CHECK-NEXT: %[[Y:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 3>, ends = array<i64: 4>, {{.*}}starts = array<i64: 2>} : (tensor<1x5x6x4xf32>) -> tensor<1x5x6x2xf32>
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @channels(%x: tensor<1x5x6x4xf32>) -> tensor<1x2x5x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<1x4x5x6xf32>) -> tensor<1x2x5x6xf32>
  return %1 : tensor<1x2x5x6xf32>
}

// -----

// CHECK-LABEL: @several_axes
// CHECK-NEXT: "migraphx.slice"(%arg0) {axes = array<i64: 2, 1>, ends = array<i64: 5, -1>, {{.*}}starts = array<i64: 1, 0>}
func.func @several_axes(%x: tensor<1x5x6x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 3, 2>, starts = array<i64: 1, 0>, ends = array<i64: 5, -1>} : (tensor<1x4x5x6xf32>) -> tensor<1x4x4x4xf32>
  return %1 : tensor<1x4x4x4xf32>
}

// -----

// Near miss: the run says what part it is.
// CHECK-LABEL: @at_run_time
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0)
// CHECK-NEXT: "migraphx.slice"(%[[T]], %arg1)
func.func @at_run_time(%x: tensor<1x5x6x4xf32>, %from: tensor<1xi64>) -> tensor<1x?x5x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %1 = "migraphx.slice"(%0, %from) {axes = array<i64: 1>, ends = array<i64: 4>, operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<1x4x5x6xf32>, tensor<1xi64>) -> tensor<1x?x5x6xf32>
  return %1 : tensor<1x?x5x6xf32>
}

// -----

// Near miss: another order.
// CHECK-LABEL: @another_order
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0)
// CHECK-NEXT: "migraphx.slice"(%[[T]])
func.func @another_order(%x: tensor<5x2x6x4xf32>) -> tensor<2x2x6x4xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0, 2, 3>} : (tensor<5x2x6x4xf32>) -> tensor<2x5x6x4xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<2x5x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %1 : tensor<2x2x6x4xf32>
}
