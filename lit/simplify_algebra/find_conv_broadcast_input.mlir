// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// One pixel everywhere: the same sum at each place.
// CHECK-LABEL: @unpadded
// CHECK-DAG: %[[S:.*]] = "migraphx.reduce_sum"(%{{[0-9]+}}) {axes = array<i64: 2, 3>}
// CHECK: %[[D:.*]] = "migraphx.dot"(%{{.*}}, %{{.*}}) : (tensor<1x2xf32>, tensor<2x1xf32>)
// CHECK: "migraphx.multibroadcast"({{.*}}) {{.*}}out_lens = array<i64: 1, 1, 4, 4>
// CHECK-NOT: migraphx.convolution
func.func @unpadded(%x: tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 1, 2, 5, 5>} : (tensor<1x2x1x1xf32>) -> tensor<1x2x5x5xf32>
  %1 = "migraphx.convolution"(%0, %w) : (tensor<1x2x5x5xf32>, tensor<1x2x2x2xf32>) -> tensor<1x1x4x4xf32>
  return %1 : tensor<1x1x4x4xf32>
}

// -----

// With padding the border differs.
// CHECK-LABEL: @padded
// CHECK: %[[C:.*]] = "migraphx.convolution"({{.*}}) {{.*}} : (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
// CHECK-DAG: "migraphx.slice"(%[[C]]) {axes = array<i64: 2>, ends = array<i64: 2>, starts = array<i64: 1>}
// CHECK: "migraphx.concat"({{.*}}) {axis = 2 {{.*}} -> tensor<1x1x6x3xf32>
// CHECK: %[[R:.*]] = "migraphx.concat"({{.*}}) {axis = 3 {{.*}} -> tensor<1x1x6x6xf32>
// CHECK-NEXT: return %[[R]]
func.func @padded(%x: tensor<1xf32>) -> tensor<1x1x6x6xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [5.0, 6.0, 7.0]]]]> : tensor<1x1x3x3xf32>} : () -> tensor<1x1x3x3xf32>
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 1, 1, 6, 6>} : (tensor<1xf32>) -> tensor<1x1x6x6xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x1x6x6xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x6x6xf32>
  return %1 : tensor<1x1x6x6xf32>
}

// -----

// Near misses: repeated along one of two axes, a stride with padding, weights of a call.
// CHECK-LABEL: @columns
// CHECK: "migraphx.convolution"({{.*}}) : (tensor<1x1x4x4xf32>
func.func @columns(%x: tensor<1x1x1x4xf32>) -> tensor<1x1x3x3xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 1, 1, 4, 4>} : (tensor<1x1x1x4xf32>) -> tensor<1x1x4x4xf32>
  %1 = "migraphx.convolution"(%0, %w) : (tensor<1x1x4x4xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32>
  return %1 : tensor<1x1x3x3xf32>
}

// -----

// CHECK-LABEL: @strided
// CHECK: "migraphx.convolution"({{.*}}) {{.*}}: (tensor<1x1x8x8xf32>
func.func @strided(%x: tensor<1xf32>) -> tensor<1x1x4x4xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x3x3xf32>} : () -> tensor<1x1x3x3xf32>
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 1, 1, 8, 8>} : (tensor<1xf32>) -> tensor<1x1x8x8xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<1x1x8x8xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x4x4xf32>
  return %1 : tensor<1x1x4x4xf32>
}

// -----

// CHECK-LABEL: @weights_of_a_call
// CHECK: "migraphx.convolution"({{.*}}) : (tensor<1x1x4x4xf32>
func.func @weights_of_a_call(%x: tensor<1xf32>, %w: tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 1, 1, 4, 4>} : (tensor<1xf32>) -> tensor<1x1x4x4xf32>
  %1 = "migraphx.convolution"(%0, %w) : (tensor<1x1x4x4xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32>
  return %1 : tensor<1x1x3x3xf32>
}
