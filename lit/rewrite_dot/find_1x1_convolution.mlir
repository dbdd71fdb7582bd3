// RUN: mgx-opt %s --mgx-rewrite-dot=convolutions --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s --check-prefix=OFF
// RUN: mgx-opt %s --mgx-rewrite-dot="convolutions strided=false" --split-input-file | filecheck %s --check-prefix=UNIT

// CHECK-LABEL: @channels_first
// CHECK: %[[T:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK: %[[X:.*]] = "migraphx.reshape"(%[[T]]) {{.*}} -> tensor<40x3xf32>
// CHECK: %[[D:.*]] = "migraphx.dot"(%[[X]], {{.*}} -> tensor<40x2xf32>
// CHECK: %[[Y:.*]] = "migraphx.reshape"(%[[D]]) {{.*}} -> tensor<2x4x5x2xf32>
// CHECK: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
// OFF-LABEL: @channels_first
// OFF: migraphx.convolution
// UNIT-LABEL: @channels_first
// UNIT: migraphx.dot
func.func @channels_first(%x: tensor<2x3x4x5xf32>) -> tensor<2x2x4x5xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0]], [[2.0]], [[3.0]]], [[[4.0]], [[5.0]], [[6.0]]]]> : tensor<2x3x1x1xf32>} : () -> tensor<2x3x1x1xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<2x3x4x5xf32>, tensor<2x3x1x1xf32>) -> tensor<2x2x4x5xf32>
  return %0 : tensor<2x2x4x5xf32>
}

// -----

// Strides skip pixels first.
// CHECK-LABEL: @channels_last
// CHECK: %[[S:.*]] = "migraphx.step"(%arg0) {axes = array<i64: 1, 2>, steps = array<i64: 2, 2>}
// CHECK: "migraphx.reshape"(%[[S]]) {{.*}} -> tensor<9x2xf32>
// CHECK: migraphx.dot
// CHECK-NOT: migraphx.transpose
// UNIT-LABEL: @channels_last
// UNIT-NOT: migraphx.dot
// UNIT: migraphx.convolution
func.func @channels_last(%x: tensor<1x5x6x2xf32>) -> tensor<1x3x3x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
  %0 = "migraphx.convolution"(%x, %w) {stride = array<i64: 2, 2>, channels_last = true} : (tensor<1x5x6x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x3x3x2xf32>
  return %0 : tensor<1x3x3x2xf32>
}

// -----

// A window of 2; groups; padding; weights that are an argument.
// CHECK-LABEL: @misses
// CHECK-NOT: migraphx.dot
func.func @misses(%x: tensor<1x2x4xf32>, %v: tensor<2x2x1xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x4xf32>, tensor<1x2x6xf32>, tensor<1x2x4xf32>) {
  %two = "migraphx.literal"() {value = dense<1.0> : tensor<2x2x2xf32>} : () -> tensor<2x2x2xf32>
  %own = "migraphx.literal"() {value = dense<1.0> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %all = "migraphx.literal"() {value = dense<1.0> : tensor<2x2x1xf32>} : () -> tensor<2x2x1xf32>
  %0 = "migraphx.convolution"(%x, %two) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x4xf32>, tensor<2x2x2xf32>) -> tensor<1x2x3xf32>
  %1 = "migraphx.convolution"(%x, %own) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>, group = 2 : i64} : (tensor<1x2x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %2 = "migraphx.convolution"(%x, %all) {padding = array<i64: 1>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x6xf32>
  %3 = "migraphx.convolution"(%x, %v) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  return %0, %1, %2, %3 : tensor<1x2x3xf32>, tensor<1x2x4xf32>, tensor<1x2x6xf32>, tensor<1x2x4xf32>
}
