// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// The shift of a normalisation becomes a bias after the weights: one row is computed.
// CHECK-LABEL: @bias
// CHECK-DAG: %[[D:.*]] = "migraphx.dot"(%[[T:[0-9]+]], %[[W:[0-9]+]]) : (tensor<4x2xf32>, tensor<2x3xf32>)
// CHECK-DAG: %[[R:.*]] = "migraphx.dot"(%{{[0-9]+}}, %[[W]]) : (tensor<1x2xf32>, tensor<2x3xf32>) -> tensor<1x3xf32>
// CHECK-DAG: %[[B:.*]] = "migraphx.multibroadcast"(%[[R]])
// CHECK: "migraphx.add"(%[[D]], %[[B]])
func.func @bias(%y: tensor<4x2xf32>) -> tensor<4x3xf32> {
  %x = "migraphx.tanh"(%y) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 4, 2>} : (tensor<2xf32>) -> tensor<4x2xf32>
  %0 = "migraphx.add"(%x, %b) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// On the right, and in a batch.
// CHECK-LABEL: @right
// CHECK-DAG: %[[D:.*]] = "migraphx.dot"(%[[W:[0-9]+]], %[[T:[0-9]+]]) : (tensor<2x2x2xf32>, tensor<2x2x4xf32>)
// CHECK-DAG: %[[R:.*]] = "migraphx.dot"({{.*}}) : (tensor<2x2x2xf32>, tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
// CHECK: migraphx.add
func.func @right(%y: tensor<2x2x4xf32>) -> tensor<2x2x4xf32> {
  %x = "migraphx.tanh"(%y) : (tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %w = "migraphx.literal"() {value = dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>} : () -> tensor<2x2x2xf32>
  %a = "migraphx.literal"() {value = dense<[[0.5], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 2, 4>} : (tensor<2x1xf32>) -> tensor<2x2x4xf32>
  %0 = "migraphx.add"(%b, %x) : (tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %1 = "migraphx.dot"(%w, %0) : (tensor<2x2x2xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  return %1 : tensor<2x2x4xf32>
}

// -----

// Near misses: what is added differs from row to row, the sum has other users.
// CHECK-LABEL: @positions
// CHECK: %[[A:.*]] = "migraphx.add"
// CHECK-NEXT: "migraphx.dot"(%[[A]]
func.func @positions(%y: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %x = "migraphx.tanh"(%y) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %a = "migraphx.literal"() {value = dense<[[0.5, 1.0], [2.0, 3.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK: %[[A:.*]] = "migraphx.add"
// CHECK-NEXT: "migraphx.dot"(%[[A]]
func.func @used(%y: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %x = "migraphx.tanh"(%y) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// An input may be close to what is subtracted from it.
// CHECK-LABEL: @exact
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0
// CHECK-NEXT: "migraphx.dot"(%[[A]]
func.func @exact(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
