// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @heads
// CHECK-NEXT: %[[C:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 1 : i64}
// CHECK-NEXT: "migraphx.reshape"(%[[C]]) {dims = array<i64: 2, 5, 2, 2>}
// CHECK-NEXT: return
func.func @heads(%x: tensor<2x3x4xf32>, %y: tensor<2x2x4xf32>) -> tensor<2x5x2x2xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 2, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x2x2xf32>
  %1 = "migraphx.reshape"(%y) {dims = array<i64: 2, 2, 2, 2>} : (tensor<2x2x4xf32>) -> tensor<2x2x2x2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<2x3x2x2xf32>, tensor<2x2x2x2xf32>) -> tensor<2x5x2x2xf32>
  return %2 : tensor<2x5x2x2xf32>
}

// -----

// Stacked: what an unsqueeze and a concat do is a concat and a reshape.
// CHECK-LABEL: @stack
// CHECK-NEXT: %[[C:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 0 : i64}
// CHECK-NEXT: "migraphx.reshape"(%[[C]]) {dims = array<i64: 2, 2, 3>}
// CHECK-NEXT: return
func.func @stack(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x2x3xf32> {
  %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
  %1 = "migraphx.unsqueeze"(%y) {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<2x2x3xf32>
  return %2 : tensor<2x2x3xf32>
}

// -----

// Near misses: the joined axis is cut out of another, the tensors differ otherwise, one is used
// again, the concat is sliced (find_concat_slice comes first).
// CHECK-LABEL: @stay
// CHECK-NOT: "migraphx.concat"(%arg
// CHECK: return
func.func @stay(%x: tensor<4x3xf32>, %y: tensor<6x2xf32>, %z: tensor<4x3xf32>) -> (tensor<2x4x3xf32>, tensor<24xf32>, tensor<12xf32>, tensor<4x3x1xf32>) {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 2, 3>} : (tensor<4x3xf32>) -> tensor<2x2x3xf32>
  %1 = "migraphx.reshape"(%z) {dims = array<i64: 2, 2, 3>} : (tensor<4x3xf32>) -> tensor<2x2x3xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<2x2x3xf32>, tensor<2x2x3xf32>) -> tensor<2x4x3xf32>
  %3 = "migraphx.reshape"(%y) {dims = array<i64: 12>} : (tensor<6x2xf32>) -> tensor<12xf32>
  %4 = "migraphx.reshape"(%x) {dims = array<i64: 12>} : (tensor<4x3xf32>) -> tensor<12xf32>
  %5 = "migraphx.concat"(%3, %4) {axis = 0 : i64} : (tensor<12xf32>, tensor<12xf32>) -> tensor<24xf32>
  %6 = "migraphx.unsqueeze"(%x) {axes = array<i64: 2>} : (tensor<4x3xf32>) -> tensor<4x3x1xf32>
  %7 = "migraphx.unsqueeze"(%z) {axes = array<i64: 2>} : (tensor<4x3xf32>) -> tensor<4x3x1xf32>
  %8 = "migraphx.concat"(%6, %7) {axis = 2 : i64} : (tensor<4x3x1xf32>, tensor<4x3x1xf32>) -> tensor<4x3x2xf32>
  %9 = "migraphx.slice"(%8) {axes = array<i64: 2>, starts = array<i64: 0>, ends = array<i64: 1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x3x2xf32>) -> tensor<4x3x1xf32>
  return %2, %5, %4, %9 : tensor<2x4x3xf32>, tensor<24xf32>, tensor<12xf32>, tensor<4x3x1xf32>
}
