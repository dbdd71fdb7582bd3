// The rule `arg_extreme` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::argmax: arg_extreme (
func.func @argmax(%x: tensor<4x?xf32>) -> tensor<4x1xi64> {
  %0 = "migraphx.argmax"(%x) {axis = 1 : i64} : (tensor<4x?xf32>) -> tensor<4x1xi64>
  return %0 : tensor<4x1xi64>
}
