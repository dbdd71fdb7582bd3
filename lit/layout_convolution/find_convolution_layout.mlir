// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @images
// CHECK-DAG: %[[X:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-DAG: %[[W:.*]] = "migraphx.transpose"(%arg1) {permutation = array<i64: 2, 3, 1, 0>}
// CHECK: %[[C:.*]] = "migraphx.convolution"(%[[X]], %[[W]]) {channels_last = true
// CHECK: "migraphx.transpose"(%[[C]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @images(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x2x2xf32> {
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x2x2xf32>
  return %0 : tensor<1x3x2x2xf32>
}

// -----

// Between two convolutions nothing is transposed.
// CHECK-LABEL: @chain
// CHECK: %[[A:.*]] = "migraphx.convolution"
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[A]]) : (tensor<1x2x2x3xf32>)
// CHECK-NOT: "migraphx.transpose"(%[[R]])
// CHECK: "migraphx.convolution"(%[[R]], %{{.*}}) {channels_last = true
func.func @chain(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>, %v: tensor<3x3x1x1xf32>) -> tensor<1x3x2x2xf32> {
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x2x2xf32>
  %1 = "migraphx.relu"(%0) : (tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  %2 = "migraphx.convolution"(%1, %v) : (tensor<1x3x2x2xf32>, tensor<3x3x1x1xf32>) -> tensor<1x3x2x2xf32>
  return %2 : tensor<1x3x2x2xf32>
}

// -----

// Three spatial axes stay.
// CHECK-LABEL: @volumes
// CHECK-NEXT: "migraphx.convolution"(%arg0, %arg1) {channels_last = false
func.func @volumes(%x: tensor<1x2x4x4x4xf32>, %w: tensor<3x2x3x3x3xf32>) -> tensor<1x3x2x2x2xf32> {
  %0 = "migraphx.convolution"(%x, %w) {channels_last = false, padding = array<i64: 0, 0, 0>, stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>} : (tensor<1x2x4x4x4xf32>, tensor<3x2x3x3x3xf32>) -> tensor<1x3x2x2x2xf32>
  return %0 : tensor<1x3x2x2x2xf32>
}
