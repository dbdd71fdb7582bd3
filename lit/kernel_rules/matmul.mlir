// The rule `matmul` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::dot: matmul (
func.func @even_tiles(%x: tensor<9x3xf32>) -> tensor<9x5xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<3x5xf32>} : () -> tensor<3x5xf32>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<9x3xf32>, %b: tensor<3x5xf32>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<9x3xf32>, tensor<3x5xf32>) -> tensor<9x5xf32>
    "migraphx.yield"(%1) : (tensor<9x5xf32>) -> ()
  }) {tag = "dot"} : (tensor<9x3xf32>, tensor<3x5xf32>) -> tensor<9x5xf32>
  return %0 : tensor<9x5xf32>
}
