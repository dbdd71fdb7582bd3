// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// Heads of a joined projection: the reshape goes first, and the slice takes whole heads.
// CHECK-LABEL: @heads
// CHECK-NEXT: %[[R:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 4, 6, 2>}
// CHECK-NEXT: "migraphx.slice"(%[[R]]) {axes = array<i64: 1>, ends = array<i64: 4>, {{.*}}starts = array<i64: 2>}
// CHECK-NEXT: return
func.func @heads(%x: tensor<4x12xf32>) -> tensor<4x2x2xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 4>, ends = array<i64: 8>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x12xf32>) -> tensor<4x4xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 4, 2, 2>} : (tensor<4x4xf32>) -> tensor<4x2x2xf32>
  return %1 : tensor<4x2x2xf32>
}

// -----

// A squeeze of the axis that the slice leaves one of: the two first axes are one then.
// CHECK-LABEL: @squeezed
// CHECK-NEXT: %[[R:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6, 5>}
// CHECK-NEXT: "migraphx.slice"(%[[R]]) {axes = array<i64: 0>, ends = array<i64: 4>, {{.*}}starts = array<i64: 2>}
// CHECK-NEXT: return
func.func @squeezed(%x: tensor<3x2x5xf32>) -> tensor<2x5xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<3x2x5xf32>) -> tensor<1x2x5xf32>
  %1 = "migraphx.squeeze"(%0) {axes = array<i64: 0>} : (tensor<1x2x5xf32>) -> tensor<2x5xf32>
  return %1 : tensor<2x5xf32>
}

// -----

// Near misses: the reshape cuts what the slice takes, joins it with what is before it, or the
// whole is no multiple of the new rows; another user of the slice would make two of it.
// CHECK-LABEL: @stay
// CHECK-COUNT-4: migraphx.slice"(%arg{{[01]}})
func.func @stay(%x: tensor<4x12xf32>, %y: tensor<5x4xf32>) -> (tensor<16xf32>, tensor<2x8xf32>, tensor<6xf32>, tensor<4x2xf32>, tensor<8xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 4>, ends = array<i64: 8>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x12xf32>) -> tensor<4x4xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 16>} : (tensor<4x4xf32>) -> tensor<16xf32>
  %2 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x12xf32>) -> tensor<4x4xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 2, 8>} : (tensor<4x4xf32>) -> tensor<2x8xf32>
  %4 = "migraphx.slice"(%y) {axes = array<i64: 0, 1>, starts = array<i64: 0, 1>, ends = array<i64: 2, 4>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5x4xf32>) -> tensor<2x3xf32>
  %5 = "migraphx.reshape"(%4) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %6 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x12xf32>) -> tensor<4x2xf32>
  %7 = "migraphx.reshape"(%6) {dims = array<i64: 8>} : (tensor<4x2xf32>) -> tensor<8xf32>
  return %1, %3, %5, %6, %7 : tensor<16xf32>, tensor<2x8xf32>, tensor<6xf32>, tensor<4x2xf32>, tensor<8xf32>
}
