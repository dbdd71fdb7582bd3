// The rule `concat` takes its kernel.
// RUN: mgx-opt %s --mgx-fuse-concat --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::concat_neg: concat (
func.func @rows(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>) -> tensor<5x8xf32> {
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %n = "migraphx.neg"(%c) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  return %n : tensor<5x8xf32>
}
