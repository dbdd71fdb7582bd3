// The rule `nonzero` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::nonzero: nonzero (
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x?xi64> {
  %0 = "migraphx.nonzero"(%x) {padded = false} : (tensor<2x3xf32>) -> tensor<2x?xi64>
  return %0 : tensor<2x?xi64>
}
