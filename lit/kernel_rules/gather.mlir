// The rule `gather` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::gather: gather (
func.func @main(%x: tensor<100x32xf32>, %i: tensor<4xi64>) -> tensor<4x32xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<100x32xf32>, tensor<4xi64>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

// CHECK: cpu::gather: gather (
func.func @elements_of_lines(%x: tensor<8x100xf32>, %i: tensor<40xi64>) -> tensor<8x40xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<8x100xf32>, tensor<40xi64>) -> tensor<8x40xf32>
  return %0 : tensor<8x40xf32>
}

// -----

// CHECK: its rows are short
func.func @one_line(%x: tensor<100xf32>, %i: tensor<40xi64>) -> tensor<40xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<100xf32>, tensor<40xi64>) -> tensor<40xf32>
  return %0 : tensor<40xf32>
}
