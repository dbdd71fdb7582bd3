// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// Two halves of the transposed rows: the halves come first, each in one piece.
// CHECK-LABEL: @halves
// CHECK: "migraphx.reshape"(%arg0) {dims = array<i64: 2, 3, 5>}
// CHECK: %[[T:.*]] = "migraphx.transpose"({{.*}}) {permutation = array<i64: 0, 2, 1>}
// CHECK-COUNT-2: "migraphx.slice"({{.*}}) {axes = array<i64: 0>
// CHECK-NOT: migraphx.slice
// CHECK: return
func.func @halves(%x: tensor<6x5xf32>) -> (tensor<5x3xf32>, tensor<5x3xf32>) {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 3>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 3>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x6xf32>) -> tensor<5x3xf32>
  return %1, %2 : tensor<5x3xf32>, tensor<5x3xf32>
}

// -----

// Near misses: unequal parts, a transpose with another user, slices of the first axis.
// CHECK-LABEL: @unequal
// CHECK-NEXT: "migraphx.transpose"(%arg0)
// CHECK-COUNT-2: {axes = array<i64: 1>
func.func @unequal(%x: tensor<6x5xf32>) -> (tensor<5x2xf32>, tensor<5x4xf32>) {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x6xf32>) -> tensor<5x2xf32>
  %2 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x6xf32>) -> tensor<5x4xf32>
  return %1, %2 : tensor<5x2xf32>, tensor<5x4xf32>
}

// -----

// CHECK-LABEL: @other_user
// CHECK-NEXT: "migraphx.transpose"(%arg0)
// CHECK-COUNT-2: {axes = array<i64: 1>
func.func @other_user(%x: tensor<6x5xf32>) -> (tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x6xf32>) {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 3>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %2 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 3>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x6xf32>) -> tensor<5x3xf32>
  return %1, %2, %0 : tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x6xf32>
}

// -----

// CHECK-LABEL: @first_axis
// CHECK-NEXT: "migraphx.transpose"(%arg0) {permutation = array<i64: 1, 0>}
func.func @first_axis(%x: tensor<5x6xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<5x6xf32>) -> tensor<6x5xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 3>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<6x5xf32>) -> tensor<3x5xf32>
  %2 = "migraphx.slice"(%0) {axes = array<i64: 0>, starts = array<i64: 3>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<6x5xf32>) -> tensor<3x5xf32>
  return %1, %2 : tensor<3x5xf32>, tensor<3x5xf32>
}

// -----

// Keys and values of a cache: its updates read heads beside others.
// CHECK-LABEL: @rows_of_a_cache
// CHECK: %[[T:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-DAG: "migraphx.slice"(%[[T]]) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64: 0>}
// CHECK-DAG: "migraphx.slice"(%[[T]]) {axes = array<i64: 1>, ends = array<i64: 4>, starts = array<i64: 2>}
func.func @rows_of_a_cache(%x: tensor<3x5x4x8xf32>, %n: tensor<3xi32>, %p: tensor<3x2x6x8xf32>) -> (tensor<3x2x5x8xf32>, tensor<3x2x6x8xf32>) {
  %t = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<3x5x4x8xf32>) -> tensor<3x4x5x8xf32>
  %k = "migraphx.slice"(%t) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<3x4x5x8xf32>) -> tensor<3x2x5x8xf32>
  %v = "migraphx.slice"(%t) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<3x4x5x8xf32>) -> tensor<3x2x5x8xf32>
  %u = "migraphx.concat_past_present"(%v, %n, %p) {} : (tensor<3x2x5x8xf32>, tensor<3xi32>, tensor<3x2x6x8xf32>) -> tensor<3x2x6x8xf32>
  return %k, %u : tensor<3x2x5x8xf32>, tensor<3x2x6x8xf32>
}
