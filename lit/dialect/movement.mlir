// Slices, pads and concatenations: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @slice_0(
// CHECK: %0 = "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: -1>, starts = array<i64: 1>} : (tensor<4x?xf32>) -> tensor<2x?xf32>
func.func @slice_0(%arg0: tensor<4x?xf32>) -> (tensor<2x?xf32>) {
  %0 = "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: -1>, starts = array<i64: 1>} : (tensor<4x?xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// CHECK-LABEL: @slice_1(
// CHECK: %0 = "migraphx.slice"(%arg0) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64: 0>} : (tensor<4x?xf32>) -> tensor<4x?xf32>
func.func @slice_1(%arg0: tensor<4x?xf32>) -> (tensor<4x?xf32>) {
  %0 = "migraphx.slice"(%arg0) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64: 0>} : (tensor<4x?xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @slice_2(
// CHECK: %0 = "migraphx.slice"(%arg0, %arg1) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64>} : (tensor<4x5xf32>, tensor<1xi64>) -> tensor<4x?xf32>
func.func @slice_2(%arg0: tensor<4x5xf32>, %arg1: tensor<1xi64>) -> (tensor<4x?xf32>) {
  %0 = "migraphx.slice"(%arg0, %arg1) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64>} : (tensor<4x5xf32>, tensor<1xi64>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @slice_3(
// CHECK: %0 = "migraphx.slice"(%arg0, %arg1, %arg2, %arg3) {axes = array<i64>, ends = array<i64>, starts = array<i64>} : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi32>, tensor<1xi64>) -> tensor<?x?xf32>
func.func @slice_3(%arg0: tensor<4x5xf32>, %arg1: tensor<1xi64>, %arg2: tensor<1xi32>, %arg3: tensor<1xi64>) -> (tensor<?x?xf32>) {
  %0 = "migraphx.slice"(%arg0, %arg1, %arg2, %arg3) {axes = array<i64>, ends = array<i64>, starts = array<i64>} : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: @step_0(
// CHECK: %0 = "migraphx.step"(%arg0) {axes = array<i64: 0, 1>, steps = array<i64: 2, 2>} : (tensor<5x?xf32>) -> tensor<3x?xf32>
func.func @step_0(%arg0: tensor<5x?xf32>) -> (tensor<3x?xf32>) {
  %0 = "migraphx.step"(%arg0) {axes = array<i64: 0, 1>, steps = array<i64: 2, 2>} : (tensor<5x?xf32>) -> tensor<3x?xf32>
  return %0 : tensor<3x?xf32>
}

// -----

// CHECK-LABEL: @reverse_0(
// CHECK: %0 = "migraphx.reverse"(%arg0) {axes = array<i64: -1>} : (tensor<5x?xf32>) -> tensor<5x?xf32>
func.func @reverse_0(%arg0: tensor<5x?xf32>) -> (tensor<5x?xf32>) {
  %0 = "migraphx.reverse"(%arg0) {axes = array<i64: -1>} : (tensor<5x?xf32>) -> tensor<5x?xf32>
  return %0 : tensor<5x?xf32>
}

// -----

// CHECK-LABEL: @scan_slice_0(
// CHECK: %0 = "migraphx.scan_slice"(%arg0, %arg1) {axis = 1 : i64, direction = 0 : i64} : (tensor<5x?xf32>, tensor<i64>) -> tensor<5x1xf32>
func.func @scan_slice_0(%arg0: tensor<5x?xf32>, %arg1: tensor<i64>) -> (tensor<5x1xf32>) {
  %0 = "migraphx.scan_slice"(%arg0, %arg1) {axis = 1 : i64, direction = 0 : i64} : (tensor<5x?xf32>, tensor<i64>) -> tensor<5x1xf32>
  return %0 : tensor<5x1xf32>
}

// -----

// CHECK-LABEL: @pad_0(
// CHECK: %0 = "migraphx.pad"(%arg0) {mode = "constant", pads = array<i64: 1, 0, 2, 3>, value = 0.000000e+00 : f64} : (tensor<2x?xf32>) -> tensor<5x?xf32>
func.func @pad_0(%arg0: tensor<2x?xf32>) -> (tensor<5x?xf32>) {
  %0 = "migraphx.pad"(%arg0) {mode = "constant", pads = array<i64: 1, 0, 2, 3>, value = 0.000000e+00 : f64} : (tensor<2x?xf32>) -> tensor<5x?xf32>
  return %0 : tensor<5x?xf32>
}

// -----

// CHECK-LABEL: @fixed_pad_0(
// CHECK: %0 = "migraphx.fixed_pad"(%arg0) {max_dims = array<i64: 8, 3>} : (tensor<?x3xf32>) -> tensor<8x3xf32>
func.func @fixed_pad_0(%arg0: tensor<?x3xf32>) -> (tensor<8x3xf32>) {
  %0 = "migraphx.fixed_pad"(%arg0) {max_dims = array<i64: 8, 3>} : (tensor<?x3xf32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// -----

// CHECK-LABEL: @concat_0(
// CHECK: %0 = "migraphx.concat"(%arg0, %arg1, %arg2) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<?x?xf32>, tensor<2x1xf32>) -> tensor<2x?xf32>
func.func @concat_0(%arg0: tensor<2x3xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<2x1xf32>) -> (tensor<2x?xf32>) {
  %0 = "migraphx.concat"(%arg0, %arg1, %arg2) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<?x?xf32>, tensor<2x1xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// CHECK-LABEL: @concat_1(
// CHECK: %0 = "migraphx.concat"(%arg0, %arg1) {axis = -1 : i64} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>
func.func @concat_1(%arg0: tensor<?x3xf32>, %arg1: tensor<?x3xf32>) -> (tensor<?x6xf32>) {
  %0 = "migraphx.concat"(%arg0, %arg1) {axis = -1 : i64} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}
