// The rule `spread` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::broadcast: spread (
func.func @broadcast(%x: tensor<40xf32>) -> tensor<2x3x40xf32> {
  %0 = "migraphx.broadcast"(%x) {axis = 2 : i64, out_lens = array<i64: 2, 3, 40>} : (tensor<40xf32>) -> tensor<2x3x40xf32>
  return %0 : tensor<2x3x40xf32>
}
