// RUN: mgx-opt %s --mgx-lower-to-linalg --split-input-file | filecheck %s

// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]{{.*}} ins(%arg0 : tensor<4x8xf32>) outs({{.*}} : tensor<4xf32>)
// CHECK: tensor.expand_shape {{.*}} : tensor<4xf32> into tensor<4x1xf32>
func.func @sum(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// -----

// Neighbouring axes are one loop.
// CHECK-LABEL: @main(
// CHECK: tensor.collapse_shape %arg0 {{\[\[}}0], [1], [2, 3]]
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
func.func @neighbours(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32> {
  %0 = "migraphx.reduce_max"(%x) {axes = array<i64: 2, 3>} : (tensor<2x3x4x5xf32>) -> tensor<2x3x1x1xf32>
  return %0 : tensor<2x3x1x1xf32>
}

// -----

// No axes: all of them.
// CHECK-LABEL: @main(
// CHECK: iterator_types = ["reduction"]
func.func @all(%x: tensor<2x3xf32>) -> tensor<1x1xf32> {
  %0 = "migraphx.reduce_prod"(%x) {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

// A mean of 16-bit floats adds in f32 and is rounded after the division.
// CHECK-LABEL: @main(
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.constant 8.000000e+00 : f32
// CHECK: arith.divf {{.*}} : f32
// CHECK: arith.truncf
func.func @mean(%x: tensor<4x8xbf16>) -> tensor<4x1xbf16> {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 1>} : (tensor<4x8xbf16>) -> tensor<4x1xbf16>
  return %0 : tensor<4x1xbf16>
}

// -----

// CHECK-LABEL: @main(
// CHECK: arith.minui
func.func @unsigned(%x: tensor<4x8xui8>) -> tensor<4x1xui8> {
  %0 = "migraphx.reduce_min"(%x) {axes = array<i64: 1>} : (tensor<4x8xui8>) -> tensor<4x1xui8>
  return %0 : tensor<4x1xui8>
}

// -----

// The maximum comes off before the exponential.
// CHECK-LABEL: @main(
// CHECK: arith.maximumf
// CHECK: arith.subf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.softmax"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
