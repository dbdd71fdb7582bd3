// RUN: mgx-opt %s --mgx-lower-to-linalg --split-input-file | filecheck %s

// CHECK-LABEL: @main(
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: linalg.matmul ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<8x2xf32>) outs(%[[F]]
func.func @rank_2(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// 16-bit floats accumulate in f32 and are rounded once.
// CHECK-LABEL: @main(
// CHECK: linalg.batch_matmul ins({{.*}} : tensor<3x4x8xf16>, tensor<3x8x2xf16>) outs({{.*}} : tensor<3x4x2xf32>)
// CHECK: arith.truncf
func.func @half(%a: tensor<3x4x8xf16>, %b: tensor<3x8x2xf16>) -> tensor<3x4x2xf16> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<3x4x8xf16>, tensor<3x8x2xf16>) -> tensor<3x4x2xf16>
  return %0 : tensor<3x4x2xf16>
}

// -----

// More batch dims are a contraction as they are.
// CHECK-LABEL: @main(
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%arg0, %arg1 : tensor<2x3x16x32xf32>, tensor<2x3x32x16xf32>)
func.func @rank_4(%a: tensor<2x3x16x32xf32>, %b: tensor<2x3x32x16xf32>) -> tensor<2x3x16x16xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3x16x32xf32>, tensor<2x3x32x16xf32>) -> tensor<2x3x16x16xf32>
  return %0 : tensor<2x3x16x16xf32>
}

// -----

// Channels first, padded ahead of the convolution.
// CHECK-LABEL: @main(
// CHECK: %[[P:.*]] = tensor.pad %arg0 low[0, 0, 1, 2] high[0, 0, 1, 2]
// CHECK: linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>} ins(%[[P]], %arg1
func.func @nchw(%x: tensor<1x2x5x5xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x3x7xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 2>, stride = array<i64: 2, 1>} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x7xf32>
  return %0 : tensor<1x3x3x7xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: linalg.conv_2d_nhwc_hwcf {dilations = dense<[1, 2]> : tensor<2xi64>
func.func @nhwc(%x: tensor<1x5x5x2xf32>, %w: tensor<3x2x2x4xf32>) -> tensor<1x3x3x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {dilation = array<i64: 1, 2>, channels_last = true} : (tensor<1x5x5x2xf32>, tensor<3x2x2x4xf32>) -> tensor<1x3x3x4xf32>
  return %0 : tensor<1x3x3x4xf32>
}

// -----

// One axis is two, the first of height 1.
// CHECK-LABEL: @main(
// CHECK: linalg.conv_2d_nhwc_hwcf {{.*}} : tensor<1x1x8x2xf32>, tensor<1x3x2x4xf32>)
func.func @nwc(%x: tensor<1x8x2xf32>, %w: tensor<3x2x4xf32>) -> tensor<1x6x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>, channels_last = true} : (tensor<1x8x2xf32>, tensor<3x2x4xf32>) -> tensor<1x6x4xf32>
  return %0 : tensor<1x6x4xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc {{.*}} : tensor<1x5x5x4xf32>, tensor<3x3x4xf32>)
func.func @depthwise(%x: tensor<1x5x5x4xf32>, %w: tensor<3x3x1x4xf32>) -> tensor<1x3x3x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {group = 4 : i64, channels_last = true} : (tensor<1x5x5x4xf32>, tensor<3x3x1x4xf32>) -> tensor<1x3x3x4xf32>
  return %0 : tensor<1x3x3x4xf32>
}

// -----

// Groups split the channels of both sides; three axes and integers are the same loop without.
// CHECK-LABEL: @main(
// CHECK: tensor.expand_shape %arg0 {{.*}}output_shape [1, 5, 5, 2, 2]
// CHECK: tensor.expand_shape %arg1 {{.*}}output_shape [3, 3, 2, 2, 3]
// CHECK: linalg.generic
// CHECK: tensor.collapse_shape {{.*}} : tensor<1x3x3x2x3xf32> into tensor<1x3x3x6xf32>
func.func @grouped(%x: tensor<1x5x5x4xf32>, %w: tensor<3x3x2x6xf32>) -> tensor<1x3x3x6xf32> {
  %0 = "migraphx.convolution"(%x, %w) {group = 2 : i64, channels_last = true} : (tensor<1x5x5x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x3x3x6xf32>
  return %0 : tensor<1x3x3x6xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction", "reduction"]
func.func @three_axes(%x: tensor<1x2x4x4x4xf32>, %w: tensor<3x2x2x2x2xf32>) -> tensor<1x3x3x3x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0, 0>, stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>} : (tensor<1x2x4x4x4xf32>, tensor<3x2x2x2x2xf32>) -> tensor<1x3x3x3x3xf32>
  return %0 : tensor<1x3x3x3x3xf32>
}
