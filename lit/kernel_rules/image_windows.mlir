// The rule `image_windows` takes a convolution of its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::convolution_relu, convolution of windows: image_windows (
func.func @image_windows(%x: tensor<?x16x16x32xf16>) -> tensor<?x14x14x32xf16> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x3x32x32xf16>} : () -> tensor<3x3x32x32xf16>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<?x16x16x32xf16>, %b: tensor<3x3x32x32xf16>):
    %1 = "migraphx.convolution"(%a, %b) {channels_last = true} : (tensor<?x16x16x32xf16>, tensor<3x3x32x32xf16>) -> tensor<?x14x14x32xf16>
    %2 = "migraphx.relu"(%1) : (tensor<?x14x14x32xf16>) -> tensor<?x14x14x32xf16>
    "migraphx.yield"(%2) : (tensor<?x14x14x32xf16>) -> ()
  }) {tag = "convolution"} : (tensor<?x16x16x32xf16>, tensor<3x3x32x32xf16>) -> tensor<?x14x14x32xf16>
  return %0 : tensor<?x14x14x32xf16>
}
