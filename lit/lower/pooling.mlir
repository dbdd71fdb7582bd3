// RUN: mgx-opt %s --mgx-lower-to-linalg --split-input-file | filecheck %s

// The window of a maximum starts at the lowest value, padding included.
// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 + d5)>
// CHECK-LABEL: @main(
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: tensor.pad %arg0 low[0, 0, 1, 0] high[0, 0, 1, 0]
// CHECK: tensor.yield %[[LOW]]
// CHECK: linalg.generic {indexing_maps = [#[[IN]]
// CHECK: arith.maximumf
func.func @max(%x: tensor<1x2x6x5xf32>) -> tensor<1x2x3x4xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 3, 2>, padding = array<i64: 1, 0>, stride = array<i64: 2, 1>} : (tensor<1x2x6x5xf32>) -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// An average divides by one number where all windows count as many elements, else by a table.
// CHECK-LABEL: @main(
// CHECK: arith.addf
// CHECK: %[[N:.*]] = arith.constant 6.000000e+00 : f32
// CHECK: arith.divf %{{.*}}, %[[N]]
func.func @average(%x: tensor<1x2x6x5xf32>) -> tensor<1x2x4x4xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 3, 2>} : (tensor<1x2x6x5xf32>) -> tensor<1x2x4x4xf32>
  return %0 : tensor<1x2x4x4xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: arith.constant dense<{{\[\[}}4.000000e+00, 6.000000e+00, 4.000000e+00], [6.000000e+00, 9.000000e+00, 6.000000e+00], [4.000000e+00, 6.000000e+00, 4.000000e+00]]> : tensor<3x3xf32>
func.func @average_padded(%x: tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 3, 3>, padding = array<i64: 1, 1>} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %0 : tensor<1x2x3x3xf32>
}

// -----

// Integers start at their own lowest value; unsigned ones compare as such.
// CHECK-LABEL: @main(
// CHECK: arith.constant -128 : i8
// CHECK: arith.maxsi
func.func @integers(%x: tensor<1x2x4xi8>) -> tensor<1x2x3xi8> {
  %0 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 2>, padding = array<i64: 0>, stride = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x2x4xi8>) -> tensor<1x2x3xi8>
  return %0 : tensor<1x2x3xi8>
}

// -----

// The square root of the sum of squares.
// CHECK-LABEL: @main(
// CHECK: arith.mulf
// CHECK: math.sqrt
func.func @norm(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "lpnorm", lengths = array<i64: 2, 2>, lp_order = 2 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
  return %0 : tensor<1x2x3x3xf32>
}

// -----

// A padded window along one axis stands outside of any region: in one it does not compile.
// CHECK-LABEL: @main(
// CHECK-NOT: flow.dispatch.region
func.func @row(%x: tensor<1x2x4xf32>) -> tensor<1x2x5xf32> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x2x4xf32>):
    %1 = "migraphx.pooling"(%a) {mode = "max", lengths = array<i64: 2>, padding = array<i64: 1>, stride = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x5xf32>
    "migraphx.yield"(%1) : (tensor<1x2x5xf32>) -> ()
  }) {tag = "pooling"} : (tensor<1x2x4xf32>) -> tensor<1x2x5xf32>
  return %0 : tensor<1x2x5xf32>
}
