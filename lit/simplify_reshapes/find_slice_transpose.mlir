// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// Query and value alike, key otherwise: one transpose of all, one on from its slice.
// CHECK-LABEL: @heads
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 1, 0, 2>}
// CHECK-DAG: %[[Q:.*]] = "migraphx.slice"(%[[T]]) {axes = array<i64: 0>, ends = array<i64: 2>, {{.*}}starts = array<i64: 0>}
// CHECK-DAG: %[[K:.*]] = "migraphx.slice"(%[[T]]) {axes = array<i64: 0>, ends = array<i64: 4>, {{.*}}starts = array<i64: 2>}
// CHECK-DAG: %[[KT:.*]] = "migraphx.transpose"(%[[K]]) {permutation = array<i64: 0, 2, 1>}
// CHECK-DAG: %[[V:.*]] = "migraphx.slice"(%[[T]]) {axes = array<i64: 0>, ends = array<i64: 6>, {{.*}}starts = array<i64: 4>}
// CHECK: return %[[Q]], %[[KT]], %[[V]]
func.func @heads(%x: tensor<4x6x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3x4xf32>, tensor<2x4x3xf32>) {
  %q = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6x3xf32>) -> tensor<4x2x3xf32>
  %k = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6x3xf32>) -> tensor<4x2x3xf32>
  %v = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 4>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6x3xf32>) -> tensor<4x2x3xf32>
  %0 = "migraphx.transpose"(%q) {permutation = array<i64: 1, 0, 2>} : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  %1 = "migraphx.transpose"(%k) {permutation = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.transpose"(%v) {permutation = array<i64: 1, 0, 2>} : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  return %0, %1, %2 : tensor<2x4x3xf32>, tensor<2x3x4xf32>, tensor<2x4x3xf32>
}

// -----

// Parts of other lengths: each lies in one piece where the axis comes to the front.
// CHECK-LABEL: @unequal
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0)
// CHECK-COUNT-2: "migraphx.slice"(%[[T]])
// CHECK-NOT: migraphx.transpose
// CHECK: return
func.func @unequal(%x: tensor<4x6xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>) {
  %a = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %b = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6xf32>) -> tensor<4x4xf32>
  %0 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %1 = "migraphx.transpose"(%b) {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<4x4xf32>
}

// -----

// Near misses: less than the whole, and unequal parts that would be strewn over the rows.
// CHECK-LABEL: @stay
// CHECK-COUNT-2: "migraphx.slice"(%arg0)
// CHECK-COUNT-2: "migraphx.slice"(%arg1)
func.func @stay(%x: tensor<4x6xf32>, %y: tensor<5x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<4x3xf32>) {
  %a = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %b = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %c = "migraphx.slice"(%y) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x4xf32>) -> tensor<2x4xf32>
  %d = "migraphx.slice"(%y) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 5>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x4xf32>) -> tensor<3x4xf32>
  %0 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %1 = "migraphx.transpose"(%b) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %2 = "migraphx.transpose"(%c) {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %3 = "migraphx.transpose"(%d) {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %0, %1, %2, %3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<4x3xf32>
}

// -----

// A near miss: the pointwise op that follows runs in the kernel of its transpose.
// CHECK-LABEL: @pointwise_follows
// CHECK-COUNT-2: "migraphx.slice"(%arg0)
func.func @pointwise_follows(%x: tensor<4x6xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %a = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 3>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %b = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 3>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %0 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %1 = "migraphx.transpose"(%b) {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %2 = "migraphx.exp"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %2, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}
