// The rule `slice` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::slice: slice (
func.func @main(%x: tensor<2x3x16xf32>) -> tensor<2x2x16xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 1>, ends = array<i64: 3>} : (tensor<2x3x16xf32>) -> tensor<2x2x16xf32>
  return %0 : tensor<2x2x16xf32>
}
