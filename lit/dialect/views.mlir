// Views: round trip of every attribute, static and dynamic dims.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @reshape_0(
// CHECK: %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
func.func @reshape_0(%arg0: tensor<2x3x4xf32>) -> (tensor<2x12xf32>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  return %0 : tensor<2x12xf32>
}

// -----

// CHECK-LABEL: @reshape_rest_of_nothing(
// CHECK: "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1>} : (tensor<0x2x3xf32>) -> tensor<0x6xf32>
func.func @reshape_rest_of_nothing(%arg0: tensor<0x2x3xf32>) -> (tensor<0x6xf32>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1>} : (tensor<0x2x3xf32>) -> tensor<0x6xf32>
  return %0 : tensor<0x6xf32>
}

// -----

// CHECK-LABEL: @reshape_1(
// CHECK: %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1>} : (tensor<?x3x4xf32>) -> tensor<?x12xf32>
func.func @reshape_1(%arg0: tensor<?x3x4xf32>) -> (tensor<?x12xf32>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1>} : (tensor<?x3x4xf32>) -> tensor<?x12xf32>
  return %0 : tensor<?x12xf32>
}

// -----

// CHECK-LABEL: @reshape_2(
// CHECK: %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1, 3>} : (tensor<?x3x?xf32>) -> tensor<?x?x3xf32>
func.func @reshape_2(%arg0: tensor<?x3x?xf32>) -> (tensor<?x?x3xf32>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1, 3>} : (tensor<?x3x?xf32>) -> tensor<?x?x3xf32>
  return %0 : tensor<?x?x3xf32>
}

// -----

// CHECK-LABEL: @reshape_3(
// CHECK: %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, 0, 0, 2, -1>} : (tensor<?x3x?x8xf32>) -> tensor<?x3x?x2x4xf32>
func.func @reshape_3(%arg0: tensor<?x3x?x8xf32>) -> (tensor<?x3x?x2x4xf32>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 0, 0, 0, 2, -1>} : (tensor<?x3x?x8xf32>) -> tensor<?x3x?x2x4xf32>
  return %0 : tensor<?x3x?x2x4xf32>
}

// -----

// CHECK-LABEL: @reshape_4(
// CHECK: %0 = "migraphx.reshape"(%arg0) {dims = array<i64: -1, 3>} : (tensor<?x12xf32>) -> tensor<?x3xf32>
func.func @reshape_4(%arg0: tensor<?x12xf32>) -> (tensor<?x3xf32>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64: -1, 3>} : (tensor<?x12xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: @reshape_5(
// CHECK: %0 = "migraphx.reshape"(%arg0) {dims = array<i64>} : (tensor<1x1xf16>) -> tensor<f16>
func.func @reshape_5(%arg0: tensor<1x1xf16>) -> (tensor<f16>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64>} : (tensor<1x1xf16>) -> tensor<f16>
  return %0 : tensor<f16>
}

// -----

// CHECK-LABEL: @reshape_6(
// CHECK: %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 4, 2>} : (tensor<?xi1>) -> tensor<4x2xi1>
func.func @reshape_6(%arg0: tensor<?xi1>) -> (tensor<4x2xi1>) {
  %0 = "migraphx.reshape"(%arg0) {dims = array<i64: 4, 2>} : (tensor<?xi1>) -> tensor<4x2xi1>
  return %0 : tensor<4x2xi1>
}

// -----

// CHECK-LABEL: @reshape_7(
// CHECK: %0 = "migraphx.reshape"(%arg0, %arg1) {dims = array<i64>} : (tensor<?x12xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
func.func @reshape_7(%arg0: tensor<?x12xf32>, %arg1: tensor<3xi64>) -> (tensor<?x?x?xf32>) {
  %0 = "migraphx.reshape"(%arg0, %arg1) {dims = array<i64>} : (tensor<?x12xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// CHECK-LABEL: @reshape_8(
// CHECK: %0 = "migraphx.reshape"(%arg0, %arg1) {dims = array<i64>} : (tensor<2x3xf32>, tensor<0xi32>) -> tensor<f32>
func.func @reshape_8(%arg0: tensor<2x3xf32>, %arg1: tensor<0xi32>) -> (tensor<f32>) {
  %0 = "migraphx.reshape"(%arg0, %arg1) {dims = array<i64>} : (tensor<2x3xf32>, tensor<0xi32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: @reshape_lazy_0(
// CHECK: %0 = "migraphx.reshape_lazy"(%arg0) {dims = array<i64: 3, -1>} : (tensor<2x6xf32>) -> tensor<3x4xf32>
func.func @reshape_lazy_0(%arg0: tensor<2x6xf32>) -> (tensor<3x4xf32>) {
  %0 = "migraphx.reshape_lazy"(%arg0) {dims = array<i64: 3, -1>} : (tensor<2x6xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// CHECK-LABEL: @flatten_0(
// CHECK: %0 = "migraphx.flatten"(%arg0) {axis = 1 : i64} : (tensor<2x?x4xf32>) -> tensor<2x?xf32>
func.func @flatten_0(%arg0: tensor<2x?x4xf32>) -> (tensor<2x?xf32>) {
  %0 = "migraphx.flatten"(%arg0) {axis = 1 : i64} : (tensor<2x?x4xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// CHECK-LABEL: @flatten_1(
// CHECK: %0 = "migraphx.flatten"(%arg0) {axis = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<1x24xf32>
func.func @flatten_1(%arg0: tensor<2x3x4xf32>) -> (tensor<1x24xf32>) {
  %0 = "migraphx.flatten"(%arg0) {axis = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<1x24xf32>
  return %0 : tensor<1x24xf32>
}

// -----

// CHECK-LABEL: @flatten_2(
// CHECK: %0 = "migraphx.flatten"(%arg0) {axis = 1 : i64} : (tensor<f32>) -> tensor<1x1xf32>
func.func @flatten_2(%arg0: tensor<f32>) -> (tensor<1x1xf32>) {
  %0 = "migraphx.flatten"(%arg0) {axis = 1 : i64} : (tensor<f32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

// CHECK-LABEL: @flatten_3(
// CHECK: %0 = "migraphx.flatten"(%arg0) {axis = 2 : i64} : (tensor<0x?xf32>) -> tensor<0x1xf32>
func.func @flatten_3(%arg0: tensor<0x?xf32>) -> (tensor<0x1xf32>) {
  %0 = "migraphx.flatten"(%arg0) {axis = 2 : i64} : (tensor<0x?xf32>) -> tensor<0x1xf32>
  return %0 : tensor<0x1xf32>
}

// -----

// CHECK-LABEL: @squeeze_0(
// CHECK: %0 = "migraphx.squeeze"(%arg0) {axes = array<i64>} : (tensor<1x?x1xf32>) -> tensor<?xf32>
func.func @squeeze_0(%arg0: tensor<1x?x1xf32>) -> (tensor<?xf32>) {
  %0 = "migraphx.squeeze"(%arg0) {axes = array<i64>} : (tensor<1x?x1xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// CHECK-LABEL: @squeeze_1(
// CHECK: %0 = "migraphx.squeeze"(%arg0) {axes = array<i64: 1>} : (tensor<1x?x1xf32>) -> tensor<1x1xf32>
func.func @squeeze_1(%arg0: tensor<1x?x1xf32>) -> (tensor<1x1xf32>) {
  %0 = "migraphx.squeeze"(%arg0) {axes = array<i64: 1>} : (tensor<1x?x1xf32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

// CHECK-LABEL: @unsqueeze_0(
// CHECK: %0 = "migraphx.unsqueeze"(%arg0) {axes = array<i64: 0, -1>, steps = array<i64>} : (tensor<?x4xf32>) -> tensor<1x?x4x1xf32>
func.func @unsqueeze_0(%arg0: tensor<?x4xf32>) -> (tensor<1x?x4x1xf32>) {
  %0 = "migraphx.unsqueeze"(%arg0) {axes = array<i64: 0, -1>, steps = array<i64>} : (tensor<?x4xf32>) -> tensor<1x?x4x1xf32>
  return %0 : tensor<1x?x4x1xf32>
}

// -----

// CHECK-LABEL: @unsqueeze_1(
// CHECK: %0 = "migraphx.unsqueeze"(%arg0) {axes = array<i64: 1, 2>, steps = array<i64: 2, 3>} : (tensor<?x12xf32>) -> tensor<?x2x3x2xf32>
func.func @unsqueeze_1(%arg0: tensor<?x12xf32>) -> (tensor<?x2x3x2xf32>) {
  %0 = "migraphx.unsqueeze"(%arg0) {axes = array<i64: 1, 2>, steps = array<i64: 2, 3>} : (tensor<?x12xf32>) -> tensor<?x2x3x2xf32>
  return %0 : tensor<?x2x3x2xf32>
}

// -----

// CHECK-LABEL: @unsqueeze_2(
// CHECK: %0 = "migraphx.unsqueeze"(%arg0) {axes = array<i64: 0>, steps = array<i64: 2>} : (tensor<?xf32>) -> tensor<2x?xf32>
func.func @unsqueeze_2(%arg0: tensor<?xf32>) -> (tensor<2x?xf32>) {
  %0 = "migraphx.unsqueeze"(%arg0) {axes = array<i64: 0>, steps = array<i64: 2>} : (tensor<?xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// CHECK-LABEL: @transpose_0(
// CHECK: %0 = "migraphx.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<2x?x4xui8>) -> tensor<4x2x?xui8>
func.func @transpose_0(%arg0: tensor<2x?x4xui8>) -> (tensor<4x2x?xui8>) {
  %0 = "migraphx.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<2x?x4xui8>) -> tensor<4x2x?xui8>
  return %0 : tensor<4x2x?xui8>
}

// -----

// CHECK-LABEL: @layout_0(
// CHECK: %0 = "migraphx.layout"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x?xf32>) -> tensor<2x?xf32>
func.func @layout_0(%arg0: tensor<2x?xf32>) -> (tensor<2x?xf32>) {
  %0 = "migraphx.layout"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// CHECK-LABEL: @contiguous_0(
// CHECK: %0 = "migraphx.contiguous"(%arg0) : (tensor<2x?xbf16>) -> tensor<2x?xbf16>
func.func @contiguous_0(%arg0: tensor<2x?xbf16>) -> (tensor<2x?xbf16>) {
  %0 = "migraphx.contiguous"(%arg0) : (tensor<2x?xbf16>) -> tensor<2x?xbf16>
  return %0 : tensor<2x?xbf16>
}

// -----

// CHECK-LABEL: @identity_0(
// CHECK: %0 = "migraphx.identity"(%arg0) : (tensor<?xf8E4M3FN>) -> tensor<?xf8E4M3FN>
func.func @identity_0(%arg0: tensor<?xf8E4M3FN>) -> (tensor<?xf8E4M3FN>) {
  %0 = "migraphx.identity"(%arg0) : (tensor<?xf8E4M3FN>) -> tensor<?xf8E4M3FN>
  return %0 : tensor<?xf8E4M3FN>
}
