// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// The heads of queries, and of fewer keys.
// CHECK-LABEL: @heads
// CHECK: %[[R:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 1, 4, 3, 2>}
// CHECK-DAG: %[[A:.*]] = "migraphx.slice"(%[[R]]) {axes = array<i64: 2>, ends = array<i64: 2>, starts = array<i64: 0>}
// CHECK-DAG: %[[B:.*]] = "migraphx.slice"(%[[R]]) {axes = array<i64: 2>, ends = array<i64: 3>, starts = array<i64: 2>}
// CHECK: return %[[A]], %[[B]]
func.func @heads(%x: tensor<1x4x6xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x1x2xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 0>, ends = array<i64: 4>} : (tensor<1x4x6xf32>) -> tensor<1x4x4xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 4>, ends = array<i64: 6>} : (tensor<1x4x6xf32>) -> tensor<1x4x2xf32>
  %2 = "migraphx.reshape"(%0) {dims = array<i64: 1, 4, -1, 2>} : (tensor<1x4x4xf32>) -> tensor<1x4x2x2xf32>
  %3 = "migraphx.reshape"(%1) {dims = array<i64: 1, 4, -1, 2>} : (tensor<1x4x2xf32>) -> tensor<1x4x1x2xf32>
  return %2, %3 : tensor<1x4x2x2xf32>, tensor<1x4x1x2xf32>
}

// -----

// Rows of run-time number; what is left of the cut axis may change too.
// CHECK-LABEL: @rows
// CHECK: %[[R:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: -1, 4, 3>}
// CHECK-COUNT-2: "migraphx.slice"(%[[R]]) {axes = array<i64: 1>
func.func @rows(%x: tensor<?x2x6xf32>) -> (tensor<?x2x3xf32>, tensor<?x2x3xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<?x2x6xf32>) -> tensor<?x1x6xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<?x2x6xf32>) -> tensor<?x1x6xf32>
  %2 = "migraphx.reshape"(%0) {dims = array<i64: -1, 2, 3>} : (tensor<?x1x6xf32>) -> tensor<?x2x3xf32>
  %3 = "migraphx.reshape"(%1) {dims = array<i64: -1, 2, 3>} : (tensor<?x1x6xf32>) -> tensor<?x2x3xf32>
  return %2, %3 : tensor<?x2x3xf32>, tensor<?x2x3xf32>
}

// -----

// Near misses: rows flow together (the parts do not lie side by side in the whole), reshapes that
// differ in what is right of the cut, a part that is used as it is.
// CHECK-LABEL: @flat
// CHECK-COUNT-2: migraphx.slice
// CHECK-COUNT-2: migraphx.reshape
func.func @flat(%x: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.reshape"(%0) {dims = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
  %3 = "migraphx.reshape"(%1) {dims = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @other_heads
// CHECK-COUNT-2: migraphx.slice
// CHECK-COUNT-2: migraphx.reshape
func.func @other_heads(%x: tensor<3x8xf32>) -> (tensor<3x2x2xf32>, tensor<3x1x4xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 4>} : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 4>, ends = array<i64: 8>} : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %2 = "migraphx.reshape"(%0) {dims = array<i64: 3, 2, 2>} : (tensor<3x4xf32>) -> tensor<3x2x2xf32>
  %3 = "migraphx.reshape"(%1) {dims = array<i64: 3, 1, 4>} : (tensor<3x4xf32>) -> tensor<3x1x4xf32>
  return %2, %3 : tensor<3x2x2xf32>, tensor<3x1x4xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK-COUNT-2: migraphx.slice
// CHECK-COUNT-2: migraphx.reshape
func.func @used(%x: tensor<3x4xf32>) -> (tensor<3x2x1xf32>, tensor<3x2x1xf32>, tensor<3x2xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %2 = "migraphx.reshape"(%0) {dims = array<i64: 3, 2, 1>} : (tensor<3x2xf32>) -> tensor<3x2x1xf32>
  %3 = "migraphx.reshape"(%1) {dims = array<i64: 3, 2, 1>} : (tensor<3x2xf32>) -> tensor<3x2x1xf32>
  return %2, %3, %1 : tensor<3x2x1xf32>, tensor<3x2x1xf32>, tensor<3x2xf32>
}
