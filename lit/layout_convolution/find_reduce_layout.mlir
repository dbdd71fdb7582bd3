// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @spatial
// CHECK-NEXT: %[[Y:.*]] = "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1, 2>} : (tensor<2x4x5x3xf32>) -> tensor<2x1x1x3xf32>
// CHECK-NEXT: "migraphx.reshape"(%[[Y]]) {dims = array<i64: 2, 3, 1, 1>}
func.func @spatial(%x: tensor<2x4x5x3xf32>) -> tensor<2x3x1x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x3xf32>) -> tensor<2x3x4x5xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 2, 3>} : (tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32>
  return %1 : tensor<2x3x1x1xf32>
}

// -----

// CHECK-LABEL: @channels
// CHECK-NEXT: "migraphx.reduce_max"(%arg0) {axes = array<i64: 3>} : (tensor<?x4x5x3xf32>) -> tensor<?x4x5x1xf32>
func.func @channels(%x: tensor<?x4x5x3xf32>) -> tensor<?x1x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x4x5x3xf32>) -> tensor<?x3x4x5xf32>
  %1 = "migraphx.reduce_max"(%0) {axes = array<i64: -3>} : (tensor<?x3x4x5xf32>) -> tensor<?x1x4x5xf32>
  return %1 : tensor<?x1x4x5xf32>
}

// -----

// CHECK-LABEL: @all
// CHECK-NEXT: "migraphx.reduce_sum"(%arg0) {axes = array<i64>} : (tensor<2x4x3xf32>) -> tensor<1x1x1xf32>
func.func @all(%x: tensor<2x4x3xf32>) -> tensor<1x1x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_sum"(%0) {axes = array<i64>} : (tensor<2x3x4xf32>) -> tensor<1x1x1xf32>
  return %1 : tensor<1x1x1xf32>
}

// -----

// Near misses: axes of run time, another order.
// CHECK-LABEL: @run_time_axes
// CHECK: migraphx.transpose
// CHECK-NEXT: "migraphx.reduce_sum"({{.*}}, {{.*}}) {axes = array<i64>} : (tensor<2x3x4xf32>, tensor<1xi64>)
func.func @run_time_axes(%x: tensor<2x4x3xf32>) -> tensor<?x?x?xf32> {
  %a = "migraphx.literal"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_sum"(%0, %a) {axes = array<i64>} : (tensor<2x3x4xf32>, tensor<1xi64>) -> tensor<?x?x?xf32>
  return %1 : tensor<?x?x?xf32>
}

// -----

// CHECK-LABEL: @other_order
// CHECK: migraphx.transpose
// CHECK-NEXT: migraphx.reduce_sum
func.func @other_order(%x: tensor<2x4x3xf32>) -> tensor<1x4x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 2, 1, 0>} : (tensor<2x4x3xf32>) -> tensor<3x4x2xf32>
  %1 = "migraphx.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<3x4x2xf32>) -> tensor<1x4x2xf32>
  return %1 : tensor<1x4x2xf32>
}
