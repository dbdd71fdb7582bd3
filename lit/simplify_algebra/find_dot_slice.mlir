// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// The last position of a language model's scores, and some of the words.
// CHECK-LABEL: @rows_and_columns
// CHECK: %[[A:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 1>, ends = array<i64: 4>, starts = array<i64: 3>}
// CHECK-NEXT: %[[B:.*]] = "migraphx.slice"(%arg1) {axes = array<i64: 2>, ends = array<i64: 5>, starts = array<i64: 1>}
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%[[A]], %[[B]])
// CHECK-NEXT: return %[[D]]
func.func @rows_and_columns(%x: tensor<2x4x3xf32>, %y: tensor<2x3x6xf32>) -> tensor<2x1x4xf32> {
  %0 = "migraphx.dot"(%x, %y) : (tensor<2x4x3xf32>, tensor<2x3x6xf32>) -> tensor<2x4x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1, 2>, starts = array<i64: 3, 1>, ends = array<i64: 4, 5>} : (tensor<2x4x6xf32>) -> tensor<2x1x4xf32>
  return %1 : tensor<2x1x4xf32>
}

// -----

// CHECK-LABEL: @batch
// CHECK: %[[A:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 0>
// CHECK-NEXT: %[[B:.*]] = "migraphx.slice"(%arg1) {axes = array<i64: 0>
// CHECK-NEXT: "migraphx.dot"(%[[A]], %[[B]])
func.func @batch(%x: tensor<2x?x3xf32>, %y: tensor<2x3x6xf32>) -> tensor<1x?x6xf32> {
  %0 = "migraphx.dot"(%x, %y) : (tensor<2x?x3xf32>, tensor<2x3x6xf32>) -> tensor<2x?x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<2x?x6xf32>) -> tensor<1x?x6xf32>
  return %1 : tensor<1x?x6xf32>
}

// -----

// Near miss: the slices of a product that is made of several stay slices.
// CHECK-LABEL: @parts
// CHECK: %[[D:.*]] = "migraphx.dot"(%arg0, %arg1)
// CHECK-NEXT: "migraphx.slice"(%[[D]])
// CHECK-NEXT: "migraphx.slice"(%[[D]])
func.func @parts(%x: tensor<4x3xf32>, %y: tensor<3x6xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %0 = "migraphx.dot"(%x, %y) : (tensor<4x3xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 3>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %2 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 3>, ends = array<i64: 6>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  return %1, %2 : tensor<4x3xf32>, tensor<4x3xf32>
}
