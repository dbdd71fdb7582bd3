// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @rank_4
// CHECK-NEXT: %[[X:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x5x6xf32>) -> tensor<1x5x6x4xf32>
// CHECK-NEXT: %[[W:.*]] = "migraphx.transpose"(%arg1) {permutation = array<i64: 2, 3, 1, 0>} : (tensor<6x2x3x3xf32>) -> tensor<3x3x2x6xf32>
// CHECK-NEXT: %[[Y:.*]] = "migraphx.convolution"(%[[X]], %[[W]]) {channels_last = true, dilation = array<i64: 1, 2>, group = 2 : i64, padding = array<i64: 1, 2, 1, 2>, padding_mode = "default_", stride = array<i64: 2, 1>} : (tensor<1x5x6x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x3x6x6xf32>
// CHECK-NEXT: %[[Z:.*]] = "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x3x6x6xf32>) -> tensor<1x6x3x6xf32>
// CHECK-NEXT: return %[[Z]]
func.func @rank_4(%x: tensor<1x4x5x6xf32>, %w: tensor<6x2x3x3xf32>) -> tensor<1x6x3x6xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 2, 1, 2>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>, group = 2 : i64} : (tensor<1x4x5x6xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x3x6xf32>
  return %0 : tensor<1x6x3x6xf32>
}

// -----

// CHECK-LABEL: @rank_3
// CHECK: "migraphx.convolution"({{.*}}) {channels_last = true, {{.*}}padding_mode = "same_lower"{{.*}} : (tensor<?x8x4xf16>, tensor<3x4x6xf16>) -> tensor<?x8x6xf16>
func.func @rank_3(%x: tensor<?x4x8xf16>, %w: tensor<6x4x3xf16>) -> tensor<?x6x8xf16> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>, padding_mode = "same_lower"} : (tensor<?x4x8xf16>, tensor<6x4x3xf16>) -> tensor<?x6x8xf16>
  return %0 : tensor<?x6x8xf16>
}

// -----

// A chain: no transpose is left between two convolutions.
// CHECK-LABEL: @chain
// CHECK: %[[Y:.*]] = "migraphx.convolution"
// CHECK: %[[R:.*]] = "migraphx.relu"(%[[Y]])
// CHECK: "migraphx.convolution"(%[[R]], {{.*}}channels_last = true
func.func @chain(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32> {
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
  %1 = "migraphx.relu"(%0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = "migraphx.convolution"(%1, %w) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
  return %2 : tensor<1x4x8x8xf32>
}

// -----

// Near misses: three spatial axes, channels-last already.
// CHECK-LABEL: @rank_5
// CHECK-NEXT: "migraphx.convolution"(%arg0, %arg1)
func.func @rank_5(%x: tensor<1x4x5x6x7xf32>, %w: tensor<6x4x1x1x1xf32>) -> tensor<1x6x5x6x7xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0, 0>, stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>} : (tensor<1x4x5x6x7xf32>, tensor<6x4x1x1x1xf32>) -> tensor<1x6x5x6x7xf32>
  return %0 : tensor<1x6x5x6x7xf32>
}

// -----

// CHECK-LABEL: @last_already
// CHECK-NEXT: "migraphx.convolution"(%arg0, %arg1)
func.func @last_already(%x: tensor<1x5x6x4xf32>, %w: tensor<1x1x4x6xf32>) -> tensor<1x5x6x6xf32> {
  %0 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<1x5x6x4xf32>, tensor<1x1x4x6xf32>) -> tensor<1x5x6x6xf32>
  return %0 : tensor<1x5x6x6xf32>
}
