// The rule `join` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::concat: join (
func.func @main(%x: tensor<2x3x16xf32>, %y: tensor<2x1x16xf32>) -> tensor<2x4x16xf32> {
  %0 = "migraphx.concat"(%x, %y) {axis = 1 : i64} : (tensor<2x3x16xf32>, tensor<2x1x16xf32>) -> tensor<2x4x16xf32>
  return %0 : tensor<2x4x16xf32>
}
