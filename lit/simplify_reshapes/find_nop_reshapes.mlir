// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @views
// CHECK-NEXT: return %arg0
func.func @views(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 0, -1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.slice"(%2) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 9>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "migraphx.pad"(%3) {pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = "migraphx.concat"(%4) {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = "migraphx.step"(%5) {axes = array<i64: 0>, steps = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %6 : tensor<2x3xf32>
}

// -----

// Axes of one element may change places, and reduce to themselves.
// CHECK-LABEL: @ones
// CHECK-NEXT: return %arg0
func.func @ones(%x: tensor<1x3x1xf32>) -> tensor<1x3x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 2, 1, 0>} : (tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 0, -1>} : (tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
  return %1 : tensor<1x3x1xf32>
}

// -----

// One unknown extent is what the others leave.
// CHECK-LABEL: @one_unknown
// CHECK-NEXT: return %arg0
func.func @one_unknown(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1, 3>} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// Near misses: equal extents change places, more than one element is reduced, extents are unknown.
// CHECK-LABEL: @square
// CHECK: migraphx.transpose
func.func @square(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

// CHECK-LABEL: @every_other
// CHECK: migraphx.slice
// CHECK: migraphx.reduce_max
func.func @every_other(%x: tensor<?x3xf32>) -> tensor<?x1xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 9>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = "migraphx.reduce_max"(%0) {axes = array<i64: 1>} : (tensor<?x3xf32>) -> tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}

// -----

// CHECK-LABEL: @two_unknown
// CHECK: migraphx.transpose
func.func @two_unknown(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A pad of an unknown extent has its operand's type and adds elements all the same.
// CHECK-LABEL: @padded
// CHECK: migraphx.pad
func.func @padded(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 1, 0, 1, 0>} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
