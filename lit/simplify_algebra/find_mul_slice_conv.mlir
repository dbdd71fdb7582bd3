// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// The second of three channels.
// CHECK-LABEL: @middle
// CHECK: %[[F:.*]] = "migraphx.concat"
// CHECK: %[[S:.*]] = "migraphx.mul"(%{{[0-9]+}}, %{{[0-9]+}}) : (tensor<3x1x1x1xf32>
// CHECK-NEXT: %[[C:.*]] = "migraphx.convolution"(%arg0, %[[S]])
// CHECK-DAG: %[[A:.*]] = "migraphx.slice"(%[[C]]) {axes = array<i64: 1>, ends = array<i64: 1>
// CHECK-DAG: %[[B:.*]] = "migraphx.slice"(%[[C]]) {axes = array<i64: 1>, ends = array<i64: 2>
// CHECK-NOT: migraphx.mul
// CHECK: return %[[A]], %[[B]]
func.func @middle(%x: tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %w = "migraphx.literal"() {value = dense<[[[[1.0]]], [[[2.0]]], [[[3.0]]]]> : tensor<3x1x1x1xf32>} : () -> tensor<3x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x1x2x2xf32>, tensor<3x1x1x1xf32>) -> tensor<1x3x2x2xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<1x3x2x2xf32>) -> tensor<1x1x2x2xf32>
  %2 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<1x3x2x2xf32>) -> tensor<1x1x2x2xf32>
  %c = "migraphx.literal"() {value = dense<5.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %a = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 1, 1, 2, 2>} : (tensor<1xf32>) -> tensor<1x1x2x2xf32>
  %3 = "migraphx.mul"(%2, %a) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %1, %3 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

// -----

// Near misses: another slice takes some of the channels, all of the result is used too.
// CHECK-LABEL: @overlap
// CHECK: migraphx.convolution
// CHECK: migraphx.mul
func.func @overlap(%x: tensor<1x1x2x2xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) {
  %w = "migraphx.literal"() {value = dense<[[[[1.0]]], [[[2.0]]], [[[3.0]]]]> : tensor<3x1x1x1xf32>} : () -> tensor<3x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x1x2x2xf32>, tensor<3x1x1x1xf32>) -> tensor<1x3x2x2xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<1x3x2x2xf32>) -> tensor<1x2x2x2xf32>
  %2 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 1>, ends = array<i64: 3>} : (tensor<1x3x2x2xf32>) -> tensor<1x2x2x2xf32>
  %c = "migraphx.literal"() {value = dense<5.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %a = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 1, 2, 2, 2>} : (tensor<1xf32>) -> tensor<1x2x2x2xf32>
  %3 = "migraphx.mul"(%2, %a) : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %1, %3 : tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>
}

// -----

// CHECK-LABEL: @all_used
// CHECK: migraphx.convolution
// CHECK: migraphx.mul
func.func @all_used(%x: tensor<1x1x2x2xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x1x2x2xf32>) {
  %w = "migraphx.literal"() {value = dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x1x2x2xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x2x2xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<1x2x2x2xf32>) -> tensor<1x1x2x2xf32>
  %c = "migraphx.literal"() {value = dense<5.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %a = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 1, 1, 2, 2>} : (tensor<1xf32>) -> tensor<1x1x2x2xf32>
  %3 = "migraphx.mul"(%1, %a) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %0, %3 : tensor<1x2x2x2xf32>, tensor<1x1x2x2xf32>
}
