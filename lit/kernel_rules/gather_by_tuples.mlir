// The rule `gather_by_tuples` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::gathernd: gather_by_tuples (
func.func @main(%x: tensor<2x5x7x32xf32>, %i: tensor<2x9x2xi64>) -> tensor<2x9x32xf32> {
  %0 = "migraphx.gathernd"(%x, %i) {batch_dims = 1 : i64} : (tensor<2x5x7x32xf32>, tensor<2x9x2xi64>) -> tensor<2x9x32xf32>
  return %0 : tensor<2x9x32xf32>
}

// -----

// CHECK: its rows are short
func.func @elements(%x: tensor<5x7xf32>, %i: tensor<9x2xi64>) -> tensor<9xf32> {
  %0 = "migraphx.gathernd"(%x, %i) {batch_dims = 0 : i64} : (tensor<5x7xf32>, tensor<9x2xi64>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}
