// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @per_channel
// CHECK: %[[B:.*]] = "migraphx.convolution"(%{{[0-9]+}}, %{{[0-9]+}}) {{.*}}(tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x1x1x1xf32>
// CHECK-NEXT: %[[M:.*]] = "migraphx.multibroadcast"(%[[B]])
// CHECK-NEXT: %[[C:.*]] = "migraphx.convolution"(%{{[0-9]+}}, %{{[0-9]+}}) {{.*}} -> tensor<1x1x2x2xf32>
// CHECK-NEXT: "migraphx.add"(%[[C]], %[[M]])
func.func @per_channel(%y: tensor<1x2x3x3xf32>) -> tensor<1x1x2x2xf32> {
  %x = "migraphx.tanh"(%y) : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %w = "migraphx.literal"() {value = dense<[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.broadcast"(%a) {axis = 1 : i64, out_lens = array<i64: 1, 2, 3, 3>} : (tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %0 = "migraphx.add"(%x, %b) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %1 = "migraphx.convolution"(%0, %w) : (tensor<1x2x3x3xf32>, tensor<1x2x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %1 : tensor<1x1x2x2xf32>
}

// -----

// Near misses: with padding the border differs, and a sum with other users stays.
// CHECK-LABEL: @padded
// CHECK: %[[A:.*]] = "migraphx.add"
// CHECK-NEXT: "migraphx.convolution"(%[[A]]
func.func @padded(%y: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %x = "migraphx.tanh"(%y) : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x3x3xf32>} : () -> tensor<1x1x3x3xf32>
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32>
  return %1 : tensor<1x1x2x2xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK: %[[A:.*]] = "migraphx.add"
// CHECK-NEXT: "migraphx.convolution"(%[[A]]
func.func @used(%y: tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %x = "migraphx.tanh"(%y) : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%0, %w) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  return %0, %1 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

// -----

// An input may be close to what is subtracted from it.
// CHECK-LABEL: @exact
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0
// CHECK-NEXT: "migraphx.convolution"(%[[A]]
func.func @exact(%x: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%0, %w) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  return %1 : tensor<1x1x2x2xf32>
}
