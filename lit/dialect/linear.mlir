// Products and convolutions: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @dot_0(
// CHECK: %0 = "migraphx.dot"(%arg0, %arg1) : (tensor<?x2x4xf16>, tensor<8x4x?xf16>) -> tensor<8x2x?xf16>
func.func @dot_0(%arg0: tensor<?x2x4xf16>, %arg1: tensor<8x4x?xf16>) -> (tensor<8x2x?xf16>) {
  %0 = "migraphx.dot"(%arg0, %arg1) : (tensor<?x2x4xf16>, tensor<8x4x?xf16>) -> tensor<8x2x?xf16>
  return %0 : tensor<8x2x?xf16>
}

// -----

// CHECK-LABEL: @convolution_0(
// CHECK: %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = false, dilation = array<i64: 1, 1>, group = 1 : i64, padding = array<i64: 1, 1>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<?x3x9x?xf32>, tensor<8x3x3x3xf32>) -> tensor<?x8x5x?xf32>
func.func @convolution_0(%arg0: tensor<?x3x9x?xf32>, %arg1: tensor<8x3x3x3xf32>) -> (tensor<?x8x5x?xf32>) {
  %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = false, dilation = array<i64: 1, 1>, group = 1 : i64, padding = array<i64: 1, 1>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<?x3x9x?xf32>, tensor<8x3x3x3xf32>) -> tensor<?x8x5x?xf32>
  return %0 : tensor<?x8x5x?xf32>
}

// -----

// CHECK-LABEL: @convolution_1(
// CHECK: %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = true, dilation = array<i64: 1, 1>, group = 2 : i64, padding = array<i64: 1, 1>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x9x9x4xf32>, tensor<3x3x2x8xf32>) -> tensor<1x5x5x8xf32>
func.func @convolution_1(%arg0: tensor<1x9x9x4xf32>, %arg1: tensor<3x3x2x8xf32>) -> (tensor<1x5x5x8xf32>) {
  %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = true, dilation = array<i64: 1, 1>, group = 2 : i64, padding = array<i64: 1, 1>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x9x9x4xf32>, tensor<3x3x2x8xf32>) -> tensor<1x5x5x8xf32>
  return %0 : tensor<1x5x5x8xf32>
}

// -----

// CHECK-LABEL: @convolution_2(
// CHECK: %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = false, dilation = array<i64: 1, 1>, group = 1 : i64, padding = array<i64: 0, 0>, padding_mode = "same_upper", stride = array<i64: 1, 1>} : (tensor<1x?x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x9x9xf32>
func.func @convolution_2(%arg0: tensor<1x?x9x9xf32>, %arg1: tensor<8x3x3x3xf32>) -> (tensor<1x8x9x9xf32>) {
  %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = false, dilation = array<i64: 1, 1>, group = 1 : i64, padding = array<i64: 0, 0>, padding_mode = "same_upper", stride = array<i64: 1, 1>} : (tensor<1x?x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x9x9xf32>
  return %0 : tensor<1x8x9x9xf32>
}

// -----

// CHECK-LABEL: @convolution_backwards_0(
// CHECK: %0 = "migraphx.convolution_backwards"(%arg0, %arg1) {dilation = array<i64: 1, 1>, group = 3 : i64, padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<?x3x4x?xf32>, tensor<3x2x2x2xf32>) -> tensor<?x6x8x?xf32>
func.func @convolution_backwards_0(%arg0: tensor<?x3x4x?xf32>, %arg1: tensor<3x2x2x2xf32>) -> (tensor<?x6x8x?xf32>) {
  %0 = "migraphx.convolution_backwards"(%arg0, %arg1) {dilation = array<i64: 1, 1>, group = 3 : i64, padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<?x3x4x?xf32>, tensor<3x2x2x2xf32>) -> tensor<?x6x8x?xf32>
  return %0 : tensor<?x6x8x?xf32>
}

// -----

// CHECK-LABEL: @im2col_0(
// CHECK: %0 = "migraphx.im2col"(%arg0, %arg1) {dilation = array<i64: 1, 1>, padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>, tensor<8x3x3x3xf32>) -> tensor<4x27xf32>
func.func @im2col_0(%arg0: tensor<1x3x4x4xf32>, %arg1: tensor<8x3x3x3xf32>) -> (tensor<4x27xf32>) {
  %0 = "migraphx.im2col"(%arg0, %arg1) {dilation = array<i64: 1, 1>, padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>, tensor<8x3x3x3xf32>) -> tensor<4x27xf32>
  return %0 : tensor<4x27xf32>
}
