// RUN: mgx-opt %s --mgx-simplify-algebra=all-forms=true --split-input-file | filecheck %s

// The scale of a normalisation goes into the weights after it.
// CHECK-LABEL: @columns
// CHECK: %[[S:.*]] = "migraphx.mul"(%{{[0-9]+}}, %{{[0-9]+}}) : (tensor<2x3xf32>
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%arg0, %[[S]])
// CHECK-NEXT: return %[[D]]
func.func @columns(%x: tensor<4x2xf32>) -> tensor<4x3xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 4, 2>} : (tensor<2xf32>) -> tensor<4x2xf32>
  %0 = "migraphx.mul"(%x, %b) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: @rows
// CHECK: %[[S:.*]] = "migraphx.mul"(%{{[0-9]+}}, %{{[0-9]+}}) : (tensor<3x2xf32>
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%[[S]], %arg0)
// CHECK-NEXT: return %[[D]]
func.func @rows(%x: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %a = "migraphx.literal"() {value = dense<[[0.5], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 4>} : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %0 = "migraphx.mul"(%b, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "migraphx.dot"(%w, %0) : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// Near misses: a scale per row of the left side, a product with other users, weights that another
// op reads (they would be kept twice).
// CHECK-LABEL: @other_axis
// CHECK: %[[M:.*]] = "migraphx.mul"(%arg0
// CHECK-NEXT: "migraphx.dot"(%[[M]]
func.func @other_axis(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %a = "migraphx.literal"() {value = dense<[[0.5], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 2>} : (tensor<2x1xf32>) -> tensor<2x2xf32>
  %0 = "migraphx.mul"(%x, %b) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK: %[[M:.*]] = "migraphx.mul"(%arg0
// CHECK-NEXT: "migraphx.dot"(%[[M]]
func.func @used(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.mul"(%x, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// CHECK-LABEL: @tied
// CHECK: %[[M:.*]] = "migraphx.mul"(%arg0
// CHECK-NEXT: "migraphx.dot"(%[[M]]
func.func @tied(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.mul"(%x, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %w, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}
