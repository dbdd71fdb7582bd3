// The rule `few_rows` takes a matmul of its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::dot_relu, dot 1x64x64 half_type: few_rows (
func.func @few_rows(%x: tensor<1x64xf16>) -> tensor<1x64xf16> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf16>} : () -> tensor<64x64xf16>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<1x64xf16>, %b: tensor<64x64xf16>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
    %2 = "migraphx.relu"(%1) : (tensor<1x64xf16>) -> tensor<1x64xf16>
    "migraphx.yield"(%2) : (tensor<1x64xf16>) -> ()
  }) {tag = "dot"} : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}
