// The rule `thread_tiles` takes a matmul of its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx1100' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::dot_relu, dot 32x32x64 float_type: thread_tiles (
func.func @thread_tiles(%x: tensor<32x64xf32>) -> tensor<32x32xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<64x32xf32>} : () -> tensor<64x32xf32>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<32x64xf32>, %b: tensor<64x32xf32>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %2 = "migraphx.relu"(%1) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    "migraphx.yield"(%2) : (tensor<32x32xf32>) -> ()
  }) {tag = "dot"} : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
