// The rule `transpose_in_two_steps` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 | filecheck %s --check-prefix=BOTH

// The second step is transposed in registers.
// BOTH-NOT: linalg.
// BOTH: vector.shuffle
// BOTH-NOT: linalg.
// CHECK: cpu::copy: transpose_in_two_steps (
func.func @short_last(%x: tensor<4x8x64x64xf32>) -> tensor<64x64x4x8xf32> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<4x8x64x64xf32>):
    %1 = "migraphx.transpose"(%a) {permutation = array<i64: 3, 2, 0, 1>} : (tensor<4x8x64x64xf32>) -> tensor<64x64x4x8xf32>
    "migraphx.yield"(%1) : (tensor<64x64x4x8xf32>) -> ()
  }) {tag = "transpose"} : (tensor<4x8x64x64xf32>) -> tensor<64x64x4x8xf32>
  return %0 : tensor<64x64x4x8xf32>
}
