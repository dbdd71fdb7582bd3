// The rule `few_bits_matmul` takes its kernel.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::blocked_dot: few_bits_matmul (
func.func @one_row(%x: tensor<1x64xf32>) -> tensor<1x48xf32> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<32x48xui8>} : () -> tensor<32x48xui8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x48xf16>} : () -> tensor<2x48xf16>
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 32 : i64} : (tensor<1x64xf32>, tensor<32x48xui8>, tensor<2x48xf16>) -> tensor<1x48xf32>
  return %0 : tensor<1x48xf32>
}
