// The rule `rotary` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::gqa_rotary_embedding: rotary (
func.func @heads(%x: tensor<1x3x1x8xf32>, %lens: tensor<1xi32>, %cos: tensor<64x4xf32>, %sin: tensor<64x4xf32>) -> tensor<1x3x1x8xf32> {
  %0 = "migraphx.gqa_rotary_embedding"(%x, %lens, %cos, %sin) {num_heads = 1 : i64, kv_num_heads = 1 : i64} : (tensor<1x3x1x8xf32>, tensor<1xi32>, tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<1x3x1x8xf32>
  return %0 : tensor<1x3x1x8xf32>
}
