// RUN: mgx-opt %s --mgx-normalize-ops --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-normalize-ops --mgx-normalize-ops --split-input-file --mlir-print-ir-after-change 2>&1 | filecheck %s --check-prefix=TWICE

// CHECK-LABEL: @axes
// CHECK: "migraphx.softmax"(%{{.*}}) {axis = 2 : i64}
// CHECK: "migraphx.reduce_sum"(%{{.*}}) {axes = array<i64: 0, 2>}
// CHECK: "migraphx.squeeze"(%{{.*}}) {axes = array<i64: 2>}
// CHECK: "migraphx.unsqueeze"(%{{.*}}) {axes = array<i64: 0, 3>
// CHECK: "migraphx.concat"(%{{.*}}) {axis = 3 : i64}
// CHECK: "migraphx.gather"(%{{.*}}) {axis = 1 : i64}
func.func @axes(%x: tensor<2x3x4xf32>, %i: tensor<1xi64>) -> tensor<1x1x3x2xf32> {
  %0 = "migraphx.softmax"(%x) {axis = -1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_sum"(%0) {axes = array<i64: -3, 2>} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  %2 = "migraphx.squeeze"(%1) {axes = array<i64: -1>} : (tensor<1x3x1xf32>) -> tensor<1x3xf32>
  %3 = "migraphx.unsqueeze"(%2) {axes = array<i64: 0, -1>} : (tensor<1x3xf32>) -> tensor<1x1x3x1xf32>
  %4 = "migraphx.concat"(%3, %3) {axis = -1 : i64} : (tensor<1x1x3x1xf32>, tensor<1x1x3x1xf32>) -> tensor<1x1x3x2xf32>
  %5 = "migraphx.gather"(%4, %i) {axis = -3 : i64} : (tensor<1x1x3x2xf32>, tensor<1xi64>) -> tensor<1x1x3x2xf32>
  return %5 : tensor<1x1x3x2xf32>
}

// -----

// The end of a flatten is one past the last axis.
// CHECK-LABEL: @flatten
// CHECK-NEXT: "migraphx.flatten"(%arg0) {axis = 2 : i64}
// CHECK-NEXT: "migraphx.flatten"(%arg0) {axis = 1 : i64}
func.func @flatten(%x: tensor<2x3xf32>) -> (tensor<6x1xf32>, tensor<2x3xf32>) {
  %0 = "migraphx.flatten"(%x) {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<6x1xf32>
  %1 = "migraphx.flatten"(%x) {axis = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1 : tensor<6x1xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @slices
// CHECK-NEXT: "migraphx.slice"(%arg0) {axes = array<i64: 1, 0>, ends = array<i64: 4, 5>, {{.*}}starts = array<i64: 2, 0>}
// CHECK-NEXT: "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: 3>, {{.*}}starts = array<i64: 3>}
func.func @slices(%x: tensor<5x4xf32>) -> (tensor<5x2xf32>, tensor<0x4xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: -1, 0>, starts = array<i64: -2, -99>, ends = array<i64: 9223372036854775807, 77>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x4xf32>) -> tensor<5x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 3>, ends = array<i64: 1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x4xf32>) -> tensor<0x4xf32>
  return %0, %1 : tensor<5x2xf32>, tensor<0x4xf32>
}

// -----

// Bounds that count from an unknown end stay.
// CHECK-LABEL: @unknown
// CHECK-NEXT: "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: -1>, {{.*}}starts = array<i64: -3>}
func.func @unknown(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: -2>, starts = array<i64: -3>, ends = array<i64: -1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @padding
// CHECK: "migraphx.convolution"({{.*}}padding = array<i64: 1, 2, 1, 2>
// CHECK: "migraphx.pooling"({{.*}}padding = array<i64: 0, 1, 0, 1>
func.func @padding(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x3x3xf32>) -> tensor<1x1x3x7xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 2>} : (tensor<1x1x4x4xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x4x6xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>, padding = array<i64: 0, 1>} : (tensor<1x1x4x6xf32>) -> tensor<1x1x3x7xf32>
  return %1 : tensor<1x1x3x7xf32>
}

// The second time nothing is left to do.
// TWICE-COUNT-5: IR Dump After NormalizeOps: mgx-normalize-ops
// TWICE-NOT: IR Dump After
