// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK-NEXT: %[[Y:.*]] = "migraphx.pad"(%arg0) {mode = "constant", pads = array<i64: 0, 1, 2, 0, 0, 3, 4, 5>, value = 1.500000e+00 : f64} : (tensor<1x4x5x2xf32>) -> tensor<1x8x11x7xf32>
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @constant(%x: tensor<1x4x5x2xf32>) -> tensor<1x7x8x11xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.pad"(%0) {mode = "constant", pads = array<i64: 0, 0, 1, 2, 0, 5, 3, 4>, value = 1.5 : f32} : (tensor<1x2x4x5xf32>) -> tensor<1x7x8x11xf32>
  return %1 : tensor<1x7x8x11xf32>
}

// -----

// CHECK-LABEL: @reflect
// CHECK-NEXT: "migraphx.pad"(%arg0) {mode = "reflect", pads = array<i64: 0, 1, 0, 0, 1, 0>
func.func @reflect(%x: tensor<2x4x3xf32>) -> tensor<2x3x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.pad"(%0) {mode = "reflect", pads = array<i64: 0, 0, 1, 0, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x6xf32>
  return %1 : tensor<2x3x6xf32>
}

// -----

// Near miss: the input is not transposed.
// CHECK-LABEL: @plain
// CHECK-NEXT: "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 0, 1, 0, 0, 1>
func.func @plain(%x: tensor<2x3x4xf32>) -> tensor<2x3x6xf32> {
  %1 = "migraphx.pad"(%x) {mode = "edge", pads = array<i64: 0, 0, 1, 0, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x6xf32>
  return %1 : tensor<2x3x6xf32>
}
