// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// Padding stays the zero point.
// CHECK-LABEL: @rank_4
// CHECK-NEXT: %[[X:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: %[[W:.*]] = "migraphx.transpose"(%arg1) {permutation = array<i64: 2, 3, 1, 0>}
// CHECK-NEXT: %[[Y:.*]] = "migraphx.quant_convolution"(%[[X]], %[[W]]) {channels_last = true, {{.*}}pad_value = 9 : i64
// CHECK-NEXT: %[[Z:.*]] = "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x6xi32>) -> tensor<1x6x5x6xi32>
// CHECK-NEXT: return %[[Z]]
func.func @rank_4(%x: tensor<1x4x5x6xui8>, %w: tensor<6x4x3x3xi8>) -> tensor<1x6x5x6xi32> {
  %0 = "migraphx.quant_convolution"(%x, %w) {padding = array<i64: 1, 1>, pad_value = 9 : i64} : (tensor<1x4x5x6xui8>, tensor<6x4x3x3xi8>) -> tensor<1x6x5x6xi32>
  return %0 : tensor<1x6x5x6xi32>
}

// -----

// CHECK-LABEL: @scaled
// CHECK-NEXT: "migraphx.quant_convolution"(%arg0, %arg1, %arg2, %arg3)
func.func @scaled(%x: tensor<1x4x5x6xf8E4M3FN>, %w: tensor<6x4x3x3xf8E4M3FN>, %s: tensor<1x4x5x6xf32>, %t: tensor<6x4x3x3xf32>) -> tensor<1x6x3x4xf32> {
  %0 = "migraphx.quant_convolution"(%x, %w, %s, %t) : (tensor<1x4x5x6xf8E4M3FN>, tensor<6x4x3x3xf8E4M3FN>, tensor<1x4x5x6xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x3x4xf32>
  return %0 : tensor<1x6x3x4xf32>
}
