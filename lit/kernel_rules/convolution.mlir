// The rule `convolution` takes its kernel.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::convolution_relu: convolution (
func.func @image(%x: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x3x16x16xf32>} : () -> tensor<3x3x16x16xf32>
  %c = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x8x8x16xf32>
  %r = "migraphx.relu"(%c) : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  return %r : tensor<1x8x8x16xf32>
}
