// RUN: mgx-opt %s --mgx-insert-pad --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-insert-pad=dense --split-input-file | filecheck %s --check-prefix=DENSE

// CHECK-LABEL: @asymmetric
// CHECK: %[[P:.*]] = "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 0, 1, 0, 0, 0, 0, 2>
// CHECK: "migraphx.convolution"(%[[P]], %arg1) {{.*}}padding = array<i64: 0, 0, 0, 0>
func.func @asymmetric(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x2x3xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 0, 0, 2>} : (tensor<1x2x4x4xf32>, tensor<3x2x2x3xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// -----

// CHECK-LABEL: @channels_last
// CHECK-NOT: migraphx.pad
// CHECK: return
// DENSE-LABEL: @channels_last
// DENSE: %[[P:.*]] = "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 1, 1, 0, 0, 1, 1, 0>
// DENSE: "migraphx.convolution"(%[[P]], %arg1) {channels_last = true
func.func @channels_last(%x: tensor<1x4x4x2xf32>, %w: tensor<3x3x2x3xf32>) -> tensor<1x4x4x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x4x4x2xf32>, tensor<3x3x2x3xf32>) -> tensor<1x4x4x3xf32>
  return %0 : tensor<1x4x4x3xf32>
}

// -----

// Near misses: symmetric, none, computed, a small depthwise kernel.
// DENSE-LABEL: @symmetric
// DENSE-NOT: migraphx.pad
// DENSE: return
// CHECK-LABEL: @symmetric
// CHECK-NOT: migraphx.pad
// CHECK: return
func.func @symmetric(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// -----

// DENSE-LABEL: @computed
// DENSE-NOT: migraphx.pad
// DENSE: return
func.func @computed(%x: tensor<1x4x4x2xf32>, %w: tensor<3x3x2x3xf32>) -> tensor<1x4x4x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding_mode = "same_upper", channels_last = true} : (tensor<1x4x4x2xf32>, tensor<3x3x2x3xf32>) -> tensor<1x4x4x3xf32>
  return %0 : tensor<1x4x4x3xf32>
}

// -----

// DENSE-LABEL: @depthwise
// DENSE-NOT: migraphx.pad
// DENSE: return
func.func @depthwise(%x: tensor<1x4x4x2xf32>, %w: tensor<3x3x1x2xf32>) -> tensor<1x4x4x2xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, group = 2 : i64, channels_last = true} : (tensor<1x4x4x2xf32>, tensor<3x3x1x2xf32>) -> tensor<1x4x4x2xf32>
  return %0 : tensor<1x4x4x2xf32>
}
