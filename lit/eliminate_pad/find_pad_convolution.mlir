// RUN: mgx-opt %s --mgx-eliminate-pad --split-input-file | filecheck %s

// CHECK-LABEL: @zero
// CHECK-NEXT: "migraphx.convolution"(%arg0, %arg1) {{.*}}padding = array<i64: 1, 3, 2, 2>
// CHECK-NEXT: return
func.func @zero(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x5x7xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 2, 0, 0, 2, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x7x7xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 0, 1>} : (tensor<1x2x7x7xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x5x7xf32>
  return %1 : tensor<1x3x5x7xf32>
}

// -----

// Near misses: another number, padded channels, reflection, a second user, a padding mode.
// CHECK-LABEL: @number
// CHECK: migraphx.pad
func.func @number(%x: tensor<1x2x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x4xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 0, 0, 1>, value = 1.0 : f64} : (tensor<1x2x4xf32>) -> tensor<1x2x6xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x6xf32>, tensor<3x2x3xf32>) -> tensor<1x3x4xf32>
  return %1 : tensor<1x3x4xf32>
}

// -----

// CHECK-LABEL: @channels
// CHECK: migraphx.pad
func.func @channels(%x: tensor<1x1x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x2xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 1, 0, 0, 0, 0>} : (tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x4xf32>, tensor<3x2x3xf32>) -> tensor<1x3x2xf32>
  return %1 : tensor<1x3x2xf32>
}

// -----

// CHECK-LABEL: @reflect
// CHECK: migraphx.pad
func.func @reflect(%x: tensor<1x2x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x4xf32> {
  %0 = "migraphx.pad"(%x) {mode = "reflect", pads = array<i64: 0, 0, 1, 0, 0, 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x6xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x6xf32>, tensor<3x2x3xf32>) -> tensor<1x3x4xf32>
  return %1 : tensor<1x3x4xf32>
}

// -----

// CHECK-LABEL: @two_users
// CHECK: migraphx.pad
func.func @two_users(%x: tensor<1x2x4xf32>, %w: tensor<3x2x3xf32>) -> (tensor<1x3x4xf32>, tensor<1x2x6xf32>) {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 0, 0, 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x6xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x6xf32>, tensor<3x2x3xf32>) -> tensor<1x3x4xf32>
  return %1, %0 : tensor<1x3x4xf32>, tensor<1x2x6xf32>
}

// -----

// CHECK-LABEL: @same_upper
// CHECK: migraphx.pad
func.func @same_upper(%x: tensor<1x2x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x6xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 0, 0, 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x6xf32>
  %1 = "migraphx.convolution"(%0, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>, padding_mode = "same_upper"} : (tensor<1x2x6xf32>, tensor<3x2x3xf32>) -> tensor<1x3x6xf32>
  return %1 : tensor<1x3x6xf32>
}
