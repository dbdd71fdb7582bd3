// The rule `gathered_windows` takes a convolution of its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::convolution_relu, convolution of few channels: gathered_windows (
func.func @gathered_windows(%x: tensor<1x16x16x3xf16>) -> tensor<1x14x14x32xf16> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x3x3x32xf16>} : () -> tensor<3x3x3x32xf16>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<1x16x16x3xf16>, %b: tensor<3x3x3x32xf16>):
    %1 = "migraphx.convolution"(%a, %b) {channels_last = true} : (tensor<1x16x16x3xf16>, tensor<3x3x3x32xf16>) -> tensor<1x14x14x32xf16>
    %2 = "migraphx.relu"(%1) : (tensor<1x14x14x32xf16>) -> tensor<1x14x14x32xf16>
    "migraphx.yield"(%2) : (tensor<1x14x14x32xf16>) -> ()
  }) {tag = "convolution"} : (tensor<1x16x16x3xf16>, tensor<3x3x3x32xf16>) -> tensor<1x14x14x32xf16>
  return %0 : tensor<1x14x14x32xf16>
}
