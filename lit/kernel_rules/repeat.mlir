// The rule `repeat` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::broadcast: repeat (
func.func @broadcast(%x: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.broadcast"(%x) {axis = 1 : i64, out_lens = array<i64: 2, 3, 4>} : (tensor<3xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}
