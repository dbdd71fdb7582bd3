// The rule `matrix_tiles` takes a matmul of its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::dot_relu, dot 32x32x32 half_type: matrix_tiles (
func.func @matrix_tiles(%x: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<32x32xf16>} : () -> tensor<32x32xf16>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<32x32xf16>, %b: tensor<32x32xf16>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf16>
    %2 = "migraphx.relu"(%1) : (tensor<32x32xf16>) -> tensor<32x32xf16>
    "migraphx.yield"(%2) : (tensor<32x32xf16>) -> ()
  }) {tag = "dot"} : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf16>
  return %0 : tensor<32x32xf16>
}
