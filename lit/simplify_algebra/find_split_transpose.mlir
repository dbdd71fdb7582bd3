// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @heads
// CHECK: %[[T:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-DAG: %[[A:.*]] = "migraphx.slice"(%[[T]]) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64: 0>}
// CHECK-DAG: %[[B:.*]] = "migraphx.slice"(%[[T]]) {axes = array<i64: 1>, ends = array<i64: 3>, starts = array<i64: 2>}
// CHECK: return %[[A]], %[[B]]
func.func @heads(%x: tensor<?x4x3x2xf32>) -> (tensor<?x2x4x2xf32>, tensor<?x1x4x2xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<?x4x3x2xf32>) -> tensor<?x4x2x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<?x4x3x2xf32>) -> tensor<?x4x1x2xf32>
  %2 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x4x2x2xf32>) -> tensor<?x2x4x2xf32>
  %3 = "migraphx.transpose"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x4x1x2xf32>) -> tensor<?x1x4x2xf32>
  return %2, %3 : tensor<?x2x4x2xf32>, tensor<?x1x4x2xf32>
}

// -----

// Near misses: keys are transposed otherwise; a part is used as it is.
// CHECK-LABEL: @keys
// CHECK-COUNT-2: migraphx.slice
// CHECK-COUNT-2: migraphx.transpose
func.func @keys(%x: tensor<4x3x4xf32>) -> (tensor<2x4x3xf32>, tensor<3x4x2xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<4x3x4xf32>) -> tensor<4x3x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<4x3x4xf32>) -> tensor<4x3x2xf32>
  %2 = "migraphx.transpose"(%0) {permutation = array<i64: 2, 0, 1>} : (tensor<4x3x2xf32>) -> tensor<2x4x3xf32>
  %3 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x2xf32>) -> tensor<3x4x2xf32>
  return %2, %3 : tensor<2x4x3xf32>, tensor<3x4x2xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK-COUNT-2: migraphx.slice
// CHECK-COUNT-2: migraphx.transpose
func.func @used(%x: tensor<3x4xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %2 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %2, %3, %1 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>
}
