// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @columns
// CHECK: %[[S:.*]] = "migraphx.mul"
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%arg0, %[[S]])
// CHECK-NEXT: return %[[D]]
func.func @columns(%x: tensor<2x2xf32>) -> tensor<2x3xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %a = "migraphx.literal"() {value = dense<[0.5, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.mul"(%0, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @rows
// CHECK: %[[S:.*]] = "migraphx.mul"
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%[[S]], %arg0)
// CHECK-NEXT: return %[[D]]
func.func @rows(%x: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %a = "migraphx.literal"() {value = dense<[[0.5], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 2>} : (tensor<2x1xf32>) -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%w, %x) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.mul"(%b, %0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// Near misses: rows of a result whose right side is constant, a scale that varies along both.
// CHECK-LABEL: @other_side
// CHECK: migraphx.dot
// CHECK-NEXT: migraphx.mul
func.func @other_side(%x: tensor<2x2xf32>) -> tensor<2x3xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %a = "migraphx.literal"() {value = dense<[[0.5], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.mul"(%0, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @both
// CHECK: migraphx.dot
// CHECK-NEXT: migraphx.mul
func.func @both(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.mul"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
