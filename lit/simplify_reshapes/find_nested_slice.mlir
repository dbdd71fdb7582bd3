// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @two_axes
// CHECK-NEXT: "migraphx.slice"(%arg0) {axes = array<i64: 0, 1>, ends = array<i64: 4, 3>, {{.*}}starts = array<i64: 2, 1>}
// CHECK-NEXT: return
func.func @two_axes(%x: tensor<5x4xf32>) -> tensor<2x2xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 5>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x4xf32>) -> tensor<4x4xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: -1, 0>, starts = array<i64: 1, -3>, ends = array<i64: 3, -1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x4xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// Unknown extents: the inner bounds count from an end that nobody knows.
// CHECK-LABEL: @unknown
// CHECK-NEXT: migraphx.slice
// CHECK-NEXT: migraphx.slice
func.func @unknown(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: -4>, ends = array<i64: 5>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?xf32>) -> tensor<?xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 3>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
