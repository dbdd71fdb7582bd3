// The rule `gather` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::gather: gather (
func.func @main(%x: tensor<100x32xf32>, %i: tensor<4xi64>) -> tensor<4x32xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<100x32xf32>, tensor<4xi64>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
