// RUN: mgx-opt %s --mgx-fuse-horizontal --split-input-file | filecheck %s

// Four tables of one width. Indices of any sign and size mean rows of their own table. A reader of
// the first lookup that stands ahead of the last one moves behind.
// CHECK-LABEL: @four
// CHECK: %[[T:.*]] = "migraphx.concat"({{.*}}) {axis = 0 : i64} {{.*}} -> tensor<9x2xf32>
// CHECK: %[[I:.*]] = "migraphx.concat"({{.*}}) {axis = 0 : i64} {{.*}} -> tensor<13xi64>
// CHECK: %[[C:.*]] = "migraphx.clip"
// CHECK: %[[R:.*]] = "migraphx.add"(%[[C]],
// CHECK: %[[G:.*]] = "migraphx.gather"(%[[T]], %[[R]]) {axis = 0 : i64}
// CHECK: %[[A:.*]] = "migraphx.slice"(%[[G]]) {axes = array<i64: 0>, ends = array<i64: 3>, starts = array<i64: 0>}
// CHECK: "migraphx.slice"(%[[G]]) {axes = array<i64: 0>, ends = array<i64: 13>, starts = array<i64: 8>}
// CHECK: "migraphx.neg"(%[[A]])
// CHECK-NOT: migraphx.gather
func.func @four(%a: tensor<3xi64>, %b: tensor<3xi64>, %c: tensor<2xi64>, %d: tensor<5xi64>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>, tensor<5x2xf32>) {
  %t = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %u = "migraphx.literal"() {value = dense<[[5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %v = "migraphx.literal"() {value = dense<[[11.0, 12.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %w = "migraphx.literal"() {value = dense<[[13.0, 14.0], [15.0, 16.0], [17.0, 18.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %0 = "migraphx.gather"(%t, %a) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %1 = "migraphx.neg"(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = "migraphx.gather"(%u, %b) {axis = 0 : i64} : (tensor<3x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %3 = "migraphx.gather"(%v, %c) {axis = -2 : i64} : (tensor<1x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %4 = "migraphx.gather"(%w, %d) {axis = 0 : i64} : (tensor<3x2xf32>, tensor<5xi64>) -> tensor<5x2xf32>
  return %1, %2, %3, %4 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>, tensor<5x2xf32>
}

// -----

// Rows of i32 indices.
// CHECK-LABEL: @rows
// CHECK-COUNT-1: migraphx.gather
// CHECK-NOT: migraphx.gather
func.func @rows(%a: tensor<1x3xi32>, %b: tensor<1x3xi32>, %c: tensor<2x3xi32>, %d: tensor<1x3xi32>) -> (tensor<1x3x1xf16>, tensor<1x3x1xf16>, tensor<2x3x1xf16>, tensor<1x3x1xf16>) {
  %t = "migraphx.literal"() {value = dense<[[1.0], [2.0]]> : tensor<2x1xf16>} : () -> tensor<2x1xf16>
  %u = "migraphx.literal"() {value = dense<[[3.0], [4.0]]> : tensor<2x1xf16>} : () -> tensor<2x1xf16>
  %v = "migraphx.literal"() {value = dense<[[5.0], [6.0], [7.0]]> : tensor<3x1xf16>} : () -> tensor<3x1xf16>
  %w = "migraphx.literal"() {value = dense<[[8.0], [9.0]]> : tensor<2x1xf16>} : () -> tensor<2x1xf16>
  %0 = "migraphx.gather"(%t, %a) {axis = 0 : i64} : (tensor<2x1xf16>, tensor<1x3xi32>) -> tensor<1x3x1xf16>
  %1 = "migraphx.gather"(%u, %b) {axis = 0 : i64} : (tensor<2x1xf16>, tensor<1x3xi32>) -> tensor<1x3x1xf16>
  %2 = "migraphx.gather"(%v, %c) {axis = 0 : i64} : (tensor<3x1xf16>, tensor<2x3xi32>) -> tensor<2x3x1xf16>
  %3 = "migraphx.gather"(%w, %d) {axis = 0 : i64} : (tensor<2x1xf16>, tensor<1x3xi32>) -> tensor<1x3x1xf16>
  return %0, %1, %2, %3 : tensor<1x3x1xf16>, tensor<1x3x1xf16>, tensor<2x3x1xf16>, tensor<1x3x1xf16>
}

// -----

// Three are too few: of the five gathers one has a wider table, and one looks up what another found.
// CHECK-LABEL: @misses
// CHECK-COUNT-5: migraphx.gather
func.func @misses(%a: tensor<3xi64>) -> (tensor<3x1xi64>, tensor<3x1xi64>, tensor<3x2xi64>, tensor<3x1xi64>) {
  %t = "migraphx.literal"() {value = dense<[[1], [0]]> : tensor<2x1xi64>} : () -> tensor<2x1xi64>
  %u = "migraphx.literal"() {value = dense<[[0], [1]]> : tensor<2x1xi64>} : () -> tensor<2x1xi64>
  %v = "migraphx.literal"() {value = dense<[[5, 6], [6, 7]]> : tensor<2x2xi64>} : () -> tensor<2x2xi64>
  %w = "migraphx.literal"() {value = dense<[[8], [9]]> : tensor<2x1xi64>} : () -> tensor<2x1xi64>
  %x = "migraphx.literal"() {value = dense<[[3], [4]]> : tensor<2x1xi64>} : () -> tensor<2x1xi64>
  %0 = "migraphx.gather"(%t, %a) {axis = 0 : i64} : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<3x1xi64>
  %1 = "migraphx.gather"(%u, %a) {axis = 0 : i64} : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<3x1xi64>
  %2 = "migraphx.gather"(%v, %a) {axis = 0 : i64} : (tensor<2x2xi64>, tensor<3xi64>) -> tensor<3x2xi64>
  %3 = "migraphx.squeeze"(%1) {axes = array<i64: 1>} : (tensor<3x1xi64>) -> tensor<3xi64>
  %4 = "migraphx.gather"(%w, %3) {axis = 0 : i64} : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<3x1xi64>
  %5 = "migraphx.gather"(%x, %a) {axis = 0 : i64} : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<3x1xi64>
  return %0, %4, %2, %5 : tensor<3x1xi64>, tensor<3x1xi64>, tensor<3x2xi64>, tensor<3x1xi64>
}

// -----

// A table that something else reads, indices that are constant, columns in place of rows, run-time dims.
// CHECK-LABEL: @other
// CHECK-COUNT-4: migraphx.gather
func.func @other(%a: tensor<2xi64>, %n: tensor<?xi64>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<?x2xf32>, tensor<2x2xf32>) {
  %t = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %u = "migraphx.literal"() {value = dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %v = "migraphx.literal"() {value = dense<[[1.0, 1.0], [1.0, 2.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %w = "migraphx.literal"() {value = dense<[[3.0, 4.0], [5.0, 8.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %i = "migraphx.literal"() {value = dense<[1, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "migraphx.gather"(%t, %a) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %1 = "migraphx.gather"(%u, %i) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %2 = "migraphx.gather"(%v, %a) {axis = 1 : i64} : (tensor<2x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %3 = "migraphx.gather"(%w, %n) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<?xi64>) -> tensor<?x2xf32>
  return %0, %1, %2, %3, %t : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<?x2xf32>, tensor<2x2xf32>
}
