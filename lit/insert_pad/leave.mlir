// RUN: mgx-opt %s --mgx-insert-pad="dense=true leave=vector" --split-input-file | filecheck %s --check-prefix=VECTOR
// RUN: mgx-opt %s --mgx-insert-pad="dense=true leave=windows" --split-input-file | filecheck %s --check-prefix=WINDOWS

// A dense convolution of constant weights: vector loops copy what they read with its border.
// VECTOR-LABEL: @dense
// VECTOR-NOT: migraphx.pad
// WINDOWS-LABEL: @dense
// WINDOWS-NOT: migraphx.pad
func.func @dense(%x: tensor<1x8x8x4xf32>) -> tensor<1x8x8x16xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x3x4x16xf32>} : () -> tensor<3x3x4x16xf32>
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x4xf32>, tensor<3x3x4x16xf32>) -> tensor<1x8x8x16xf32>
  return %0 : tensor<1x8x8x16xf32>
}

// -----

// Weights that are an argument: no vector loops. Groups, channels that do not fill the vectors and
// dynamic dims are no hindrance.
// VECTOR-LABEL: @compilers
// VECTOR-COUNT-1: migraphx.pad
// VECTOR-NOT: migraphx.pad
// WINDOWS-LABEL: @compilers
// WINDOWS-COUNT-1: migraphx.pad
// WINDOWS-NOT: migraphx.pad
func.func @compilers(%x: tensor<1x8x8x4xf32>, %v: tensor<3x3x4x16xf32>, %y: tensor<?x?x?x4xf32>) -> (tensor<1x8x8x16xf32>, tensor<1x8x8x12xf32>, tensor<?x?x?x12xf32>) {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x3x4x12xf32>} : () -> tensor<3x3x4x12xf32>
  %g = "migraphx.literal"() {value = dense<0.5> : tensor<5x5x2x12xf32>} : () -> tensor<5x5x2x12xf32>
  %0 = "migraphx.convolution"(%x, %v) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x4xf32>, tensor<3x3x4x16xf32>) -> tensor<1x8x8x16xf32>
  %1 = "migraphx.convolution"(%x, %g) {padding = array<i64: 2, 2>, group = 2, channels_last = true} : (tensor<1x8x8x4xf32>, tensor<5x5x2x12xf32>) -> tensor<1x8x8x12xf32>
  %2 = "migraphx.convolution"(%y, %w) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<?x?x?x4xf32>, tensor<3x3x4x12xf32>) -> tensor<?x?x?x12xf32>
  return %0, %1, %2 : tensor<1x8x8x16xf32>, tensor<1x8x8x12xf32>, tensor<?x?x?x12xf32>
}

// -----

// A window that moves along one axis only: a region with its pad inside does not compile.
// WINDOWS-LABEL: @row
// WINDOWS: migraphx.pad
// VECTOR-LABEL: @row
// VECTOR-NOT: migraphx.pad
func.func @row(%x: tensor<1x1x8x4xf32>) -> tensor<1x1x8x16xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<1x3x4x16xf32>} : () -> tensor<1x3x4x16xf32>
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 1>, channels_last = true} : (tensor<1x1x8x4xf32>, tensor<1x3x4x16xf32>) -> tensor<1x1x8x16xf32>
  return %0 : tensor<1x1x8x16xf32>
}

// -----

// 16-bit images are widened as they are copied.
// VECTOR-LABEL: @half
// VECTOR-NOT: migraphx.pad
func.func @half(%x: tensor<1x8x8x4xf16>) -> tensor<1x8x8x16xf16> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x3x4x16xf16>} : () -> tensor<3x3x4x16xf16>
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x4xf16>, tensor<3x3x4x16xf16>) -> tensor<1x8x8x16xf16>
  return %0 : tensor<1x8x8x16xf16>
}
