// RUN: mgx-opt %s --mgx-insert-pad --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-insert-pad=dense=true --split-input-file | filecheck %s --check-prefix=DENSE

// Asymmetric padding becomes a pad op in either mode.
// CHECK-LABEL: @asymmetric
// CHECK-NEXT: %[[P:.*]] = "migraphx.pad"(%arg0) {mode = "constant", pads = array<i64: 0, 0, 0, 1, 0, 0, 2, 1>, value = 0.000000e+00 : f64} : (tensor<1x2x4x5xf32>) -> tensor<1x2x6x7xf32>
// CHECK-NEXT: "migraphx.convolution"(%[[P]], %arg1) {{.*}}group = 1 {{.*}}padding = array<i64: 0, 0, 0, 0>{{.*}}stride = array<i64: 2, 1>
// DENSE-LABEL: @asymmetric
// DENSE-NEXT: migraphx.pad
func.func @asymmetric(%x: tensor<1x2x4x5xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x2x5xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 1, 2, 1>, stride = array<i64: 2, 1>} : (tensor<1x2x4x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x2x5xf32>
  return %0 : tensor<1x3x2x5xf32>
}

// -----

// Channels-last: the padded axes are the middle ones; group, dilation and dynamic batch stay.
// CHECK-LABEL: @channels_last
// CHECK-NEXT: "migraphx.convolution"(%arg0, %arg1) {{.*}}padding = array<i64: 1, 1>
// DENSE-LABEL: @channels_last
// DENSE-NEXT: %[[P:.*]] = "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 1, 1, 0, 0, 1, 1, 0>{{.*}} -> tensor<?x10x10x4xf32>
// DENSE-NEXT: "migraphx.convolution"(%[[P]], %arg1) {channels_last = true, dilation = array<i64: 2, 1>, group = 2 : i64, padding = array<i64: 0, 0>
func.func @channels_last(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x2x6xf32>) -> tensor<?x6x8x6xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, dilation = array<i64: 2, 1>, group = 2 : i64, channels_last = true} : (tensor<?x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<?x6x8x6xf32>
  return %0 : tensor<?x6x8x6xf32>
}

// -----

// CHECK-LABEL: @one_axis
// CHECK-NEXT: "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 0, 1, 0, 0, 0>
// DENSE-LABEL: @one_axis
// DENSE-NEXT: "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 0, 1, 0, 0, 0>
func.func @one_axis(%x: tensor<1x2x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x2x4xf32>, tensor<3x2x3xf32>) -> tensor<1x3x3xf32>
  return %0 : tensor<1x3x3xf32>
}

// -----

// A strided depthwise 5x5 and a 3x3 pad their input themselves; a 5x5 of stride 1 does not.
// DENSE-LABEL: @depthwise_strided
// DENSE-NEXT: "migraphx.convolution"(%arg0
func.func @depthwise_strided(%x: tensor<1x8x8x4xf32>, %w: tensor<5x5x1x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 2, 2>, stride = array<i64: 2, 2>, group = 4 : i64, channels_last = true} : (tensor<1x8x8x4xf32>, tensor<5x5x1x4xf32>) -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}

// -----

// DENSE-LABEL: @depthwise_3x3
// DENSE-NEXT: "migraphx.convolution"(%arg0
func.func @depthwise_3x3(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x1x4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, group = 4 : i64, channels_last = true} : (tensor<1x8x8x4xf32>, tensor<3x3x1x4xf32>) -> tensor<1x8x8x4xf32>
  return %0 : tensor<1x8x8x4xf32>
}

// -----

// DENSE-LABEL: @depthwise_5x5
// DENSE-NEXT: migraphx.pad
func.func @depthwise_5x5(%x: tensor<1x8x8x4xf32>, %w: tensor<5x5x1x4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 2, 2>, group = 4 : i64, channels_last = true} : (tensor<1x8x8x4xf32>, tensor<5x5x1x4xf32>) -> tensor<1x8x8x4xf32>
  return %0 : tensor<1x8x8x4xf32>
}

// -----

// So does a window along one axis.
// DENSE-LABEL: @depthwise_one_axis
// DENSE-NEXT: migraphx.pad
func.func @depthwise_one_axis(%x: tensor<1x8x8x4xf32>, %w: tensor<1x3x1x4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 1>, group = 4 : i64, channels_last = true} : (tensor<1x8x8x4xf32>, tensor<1x3x1x4xf32>) -> tensor<1x8x8x4xf32>
  return %0 : tensor<1x8x8x4xf32>
}

// -----

// Near misses: symmetric padding of channels-first, none at all, padding that is computed.
// CHECK-LABEL: @symmetric
// CHECK-NEXT: "migraphx.convolution"(%arg0
// DENSE-LABEL: @symmetric
// DENSE-NEXT: "migraphx.convolution"(%arg0
func.func @symmetric(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// -----

// CHECK-LABEL: @none
// CHECK-NEXT: "migraphx.convolution"(%arg0
// DENSE-LABEL: @none
// DENSE-NEXT: "migraphx.convolution"(%arg0
func.func @none(%x: tensor<1x4x4x2xf32>, %w: tensor<3x3x2x3xf32>) -> tensor<1x2x2x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<1x4x4x2xf32>, tensor<3x3x2x3xf32>) -> tensor<1x2x2x3xf32>
  return %0 : tensor<1x2x2x3xf32>
}

// -----

// CHECK-LABEL: @same
// CHECK-NEXT: "migraphx.convolution"(%arg0
// DENSE-LABEL: @same
// DENSE-NEXT: "migraphx.convolution"(%arg0
func.func @same(%x: tensor<1x4x4x2xf32>, %w: tensor<2x2x2x3xf32>) -> tensor<1x4x4x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding_mode = "same_upper", channels_last = true} : (tensor<1x4x4x2xf32>, tensor<2x2x2x3xf32>) -> tensor<1x4x4x3xf32>
  return %0 : tensor<1x4x4x3xf32>
}
