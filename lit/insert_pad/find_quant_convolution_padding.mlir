// RUN: mgx-opt %s --mgx-insert-pad="dense=true leave=windows" --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-insert-pad="dense=true leave=vector" --split-input-file | filecheck %s --check-prefix=VECTOR

// Kernels that read past a border as 0 get an image with another border.
// CHECK-LABEL: @other_border
// CHECK-NEXT: %[[P:.*]] = "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 1, 0, 0, 0, 1, 2, 0>, value = -3.000000e+00 : f64}
// CHECK-NEXT: "migraphx.quant_convolution"(%[[P]], %arg1) {{.*}}padding = array<i64: 0, 0, 0, 0>
// VECTOR-LABEL: @other_border
// VECTOR-NOT: migraphx.pad
func.func @other_border(%x: tensor<1x4x5x16xi8>, %w: tensor<3x3x16x6xi8>) -> tensor<1x4x5x6xi32> {
  %0 = "migraphx.quant_convolution"(%x, %w) {padding = array<i64: 1, 0, 1, 2>, pad_value = -3 : i64, channels_last = true} : (tensor<1x4x5x16xi8>, tensor<3x3x16x6xi8>) -> tensor<1x4x5x6xi32>
  return %0 : tensor<1x4x5x6xi32>
}

// -----

// Near misses: a border of 0; no border.
// CHECK-LABEL: @as_it_is
// CHECK-NOT: migraphx.pad
func.func @as_it_is(%x: tensor<1x4x5x16xi8>, %w: tensor<3x3x16x6xi8>) -> (tensor<1x4x5x6xi32>, tensor<1x2x3x6xi32>) {
  %0 = "migraphx.quant_convolution"(%x, %w) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x4x5x16xi8>, tensor<3x3x16x6xi8>) -> tensor<1x4x5x6xi32>
  %1 = "migraphx.quant_convolution"(%x, %w) {padding = array<i64: 0, 0>, pad_value = 5 : i64, channels_last = true} : (tensor<1x4x5x16xi8>, tensor<3x3x16x6xi8>) -> tensor<1x2x3x6xi32>
  return %0, %1 : tensor<1x4x5x6xi32>, tensor<1x2x3x6xi32>
}

// -----

// Few channels: filled up to what a matrix instruction takes, weights with 0.
// CHECK-LABEL: @few_channels
// CHECK-DAG: %[[P:.*]] = "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 1, 1, 0, 0, 1, 1, 13>, value = 4.000000e+00 : f64}
// CHECK-DAG: %[[W:.*]] = "migraphx.pad"(%arg1) {{.*}}pads = array<i64: 0, 0, 0, 0, 0, 0, 13, 0>, value = 0.000000e+00 : f64}
// CHECK: "migraphx.quant_convolution"(%[[P]], %[[W]])
func.func @few_channels(%x: tensor<1x4x5x3xi8>, %w: tensor<3x3x3x6xi8>) -> tensor<1x4x5x6xi32> {
  %0 = "migraphx.quant_convolution"(%x, %w) {padding = array<i64: 1, 1>, pad_value = 4 : i64, channels_last = true} : (tensor<1x4x5x3xi8>, tensor<3x3x3x6xi8>) -> tensor<1x4x5x6xi32>
  return %0 : tensor<1x4x5x6xi32>
}
