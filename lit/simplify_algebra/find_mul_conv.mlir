// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// A batch normalisation's scale goes into the weights.
// CHECK-LABEL: @per_channel
// CHECK-DAG: %[[W:.*]] = "migraphx.literal"() {value = dense<{{.*}}> : tensor<2x3x1x1xf32>}
// CHECK-DAG: %[[A:.*]] = "migraphx.broadcast"(%{{.*}}) {axis = 0 : i64, {{.*}}out_lens = array<i64: 2, 3, 1, 1>
// CHECK: %[[S:.*]] = "migraphx.mul"(%[[W]], %[[A]])
// CHECK-NEXT: %[[C:.*]] = "migraphx.convolution"(%arg0, %[[S]]) {{.*}}stride = array<i64: 2, 2>
// CHECK-NEXT: return %[[C]]
func.func @per_channel(%x: tensor<1x3x4x4xf32>) -> tensor<1x2x2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0]], [[2.0]], [[3.0]]], [[[4.0]], [[5.0]], [[6.0]]]]> : tensor<2x3x1x1xf32>} : () -> tensor<2x3x1x1xf32>
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.broadcast"(%a) {axis = 1 : i64, out_lens = array<i64: 1, 2, 2, 2>} : (tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %0 = "migraphx.convolution"(%x, %w) {stride = array<i64: 2, 2>} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x2x2xf32>
  %1 = "migraphx.mul"(%0, %b) : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %1 : tensor<1x2x2x2xf32>
}

// -----

// A reshape before the broadcast, and groups.
// CHECK-LABEL: @grouped
// CHECK: %[[S:.*]] = "migraphx.mul"
// CHECK-NEXT: %[[C:.*]] = "migraphx.convolution"(%arg0, %[[S]]) {{.*}}group = 2
// CHECK-NEXT: return %[[C]]
func.func @grouped(%x: tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[2.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %a = "migraphx.literal"() {value = dense<[[0.5, 2.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %r = "migraphx.reshape"(%a) {dims = array<i64: 1, 2, 1, 1>} : (tensor<1x2xf32>) -> tensor<1x2x1x1xf32>
  %b = "migraphx.multibroadcast"(%r) {out_lens = array<i64: 1, 2, 2, 2>} : (tensor<1x2x1x1xf32>) -> tensor<1x2x2x2xf32>
  %0 = "migraphx.convolution"(%x, %w) {group = 2 : i64} : (tensor<1x2x2x2xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x2x2xf32>
  %1 = "migraphx.mul"(%b, %0) : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %1 : tensor<1x2x2x2xf32>
}

// -----

// CHECK-LABEL: @channels_last
// CHECK: %[[S:.*]] = "migraphx.mul"
// CHECK-NEXT: %[[C:.*]] = "migraphx.convolution"(%arg0, %[[S]]) {channels_last = true
// CHECK-NEXT: return %[[C]]
func.func @channels_last(%x: tensor<1x2x2x3xf32>) -> tensor<1x2x2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]]> : tensor<1x1x3x2xf32>} : () -> tensor<1x1x3x2xf32>
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 1, 2, 2, 2>} : (tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %0 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<1x2x2x3xf32>, tensor<1x1x3x2xf32>) -> tensor<1x2x2x2xf32>
  %1 = "migraphx.mul"(%0, %b) : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %1 : tensor<1x2x2x2xf32>
}

// -----

// Near misses: the scale varies in space, the result has other users, the weights are an input.
// CHECK-LABEL: @per_pixel
// CHECK: migraphx.convolution
// CHECK-NEXT: migraphx.mul
func.func @per_pixel(%x: tensor<1x1x1x2xf32>) -> tensor<1x2x1x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0]]], [[[4.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 1, 2, 1, 2>} : (tensor<2xf32>) -> tensor<1x2x1x2xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x1x1x2xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x1x2xf32>
  %1 = "migraphx.mul"(%0, %b) : (tensor<1x2x1x2xf32>, tensor<1x2x1x2xf32>) -> tensor<1x2x1x2xf32>
  return %1 : tensor<1x2x1x2xf32>
}

// -----

// CHECK-LABEL: @two_users
// CHECK: %[[C:.*]] = "migraphx.convolution"
// CHECK-NEXT: %[[M:.*]] = "migraphx.mul"
// CHECK-NEXT: return %[[C]], %[[M]]
func.func @two_users(%x: tensor<1x1x1x2xf32>) -> (tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>) {
  %w = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %b = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x2xf32>
  %1 = "migraphx.mul"(%0, %b) : (tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>) -> tensor<1x1x1x2xf32>
  return %0, %1 : tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>
}

// -----

// CHECK-LABEL: @weights_of_a_call
// CHECK: migraphx.convolution
// CHECK-NEXT: migraphx.mul
func.func @weights_of_a_call(%x: tensor<1x1x1x2xf32>, %w: tensor<2x1x1x1xf32>) -> tensor<1x2x1x2xf32> {
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.broadcast"(%a) {axis = 1 : i64, out_lens = array<i64: 1, 2, 1, 2>} : (tensor<2xf32>) -> tensor<1x2x1x2xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x1x1x2xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x1x2xf32>
  %1 = "migraphx.mul"(%0, %b) : (tensor<1x2x1x2xf32>, tensor<1x2x1x2xf32>) -> tensor<1x2x1x2xf32>
  return %1 : tensor<1x2x1x2xf32>
}
