// RUN: mgx-opt %s --mgx-rewrite-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @known
// CHECK: "migraphx.convolution"{{.*}}padding = array<i64: 1, 0, 1, 1>, padding_mode = "default_"
func.func @known(%x: tensor<1x3x8x6xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x8x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0>, stride = array<i64: 1, 2>, padding_mode = "same_upper"} : (tensor<1x3x8x6xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x3xf32>
  return %0 : tensor<1x4x8x3xf32>
}

// -----

// CHECK-LABEL: @unknown
// CHECK-NEXT: "migraphx.convolution"{{.*}}padding_mode = "same_lower"
func.func @unknown(%x: tensor<1x3x?x6xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x?x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0>, stride = array<i64: 2, 2>, padding_mode = "same_lower"} : (tensor<1x3x?x6xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x?x3xf32>
  return %0 : tensor<1x4x?x3xf32>
}
