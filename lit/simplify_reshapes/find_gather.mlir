// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// Neighbours: a slice.
// CHECK-LABEL: @range
// CHECK-NEXT: "migraphx.slice"(%arg0) {axes = array<i64: 1>, ends = array<i64: 4>, {{.*}}starts = array<i64: 2>}
// CHECK-NEXT: return
func.func @range(%x: tensor<3x5xf32>) -> tensor<3x2xf32> {
  %i = "migraphx.literal"() {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<3x5xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

// Every second, counted from the end in part.
// CHECK-LABEL: @every_second
// CHECK: %[[S:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: 6>, {{.*}}starts = array<i64: 1>}
// CHECK-NEXT: "migraphx.step"(%[[S]]) {axes = array<i64: 0>, steps = array<i64: 2>}
// CHECK-NEXT: return
func.func @every_second(%x: tensor<7xf32>) -> tensor<3xf32> {
  %i = "migraphx.literal"() {value = dense<[1, 3, -2]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<7xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// Each twice: a broadcast.
// CHECK-LABEL: @twice
// CHECK-NOT: migraphx.gather
// CHECK: "migraphx.broadcast"(%arg0) {axis = 0 : i64, {{.*}}out_lens = array<i64: 3, 2>}
// CHECK-NEXT: "migraphx.reshape"
// CHECK-NEXT: return
func.func @twice(%x: tensor<3xf32>) -> tensor<6xf32> {
  %i = "migraphx.literal"() {value = dense<[0, 0, 1, 1, 2, 2]> : tensor<6xi64>} : () -> tensor<6xi64>
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<3xf32>, tensor<6xi64>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// Two strides, the larger one inside: a transpose.
// CHECK-LABEL: @transposed
// CHECK-NOT: migraphx.gather
// CHECK: "migraphx.transpose"({{.*}}) {permutation = array<i64: 1, 0>}
// CHECK-NOT: migraphx.gather
// CHECK: return
func.func @transposed(%x: tensor<6xf32>) -> tensor<3x2xf32> {
  %i = "migraphx.literal"() {value = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>} : () -> tensor<3x2xi64>
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<6xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

// A run-time extent beside the axis is in nobody's way.
// CHECK-LABEL: @beside_dynamic
// CHECK: "migraphx.slice"(%arg0) {axes = array<i64: 1>, ends = array<i64: 2>, {{.*}}starts = array<i64: 1>}
func.func @beside_dynamic(%x: tensor<?x5xf32>) -> tensor<?x1xf32> {
  %i = "migraphx.literal"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<?x5xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// No rule, running backwards, overlapping windows, indices of an argument: they stay.
// CHECK-LABEL: @stay
// CHECK-COUNT-4: migraphx.gather
func.func @stay(%x: tensor<5xf32>, %j: tensor<2xi64>) -> (tensor<3xf32>, tensor<2xf32>, tensor<4xf32>, tensor<2xf32>) {
  %i = "migraphx.literal"() {value = dense<[0, 1, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %b = "migraphx.literal"() {value = dense<[3, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %w = "migraphx.literal"() {value = dense<[0, 1, 1, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<5xf32>, tensor<3xi64>) -> tensor<3xf32>
  %1 = "migraphx.gather"(%x, %b) {axis = 0 : i64} : (tensor<5xf32>, tensor<2xi64>) -> tensor<2xf32>
  %2 = "migraphx.gather"(%x, %w) {axis = 0 : i64} : (tensor<5xf32>, tensor<4xi64>) -> tensor<4xf32>
  %3 = "migraphx.gather"(%x, %j) {axis = 0 : i64} : (tensor<5xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<3xf32>, tensor<2xf32>, tensor<4xf32>, tensor<2xf32>
}
