// The rule `rows` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::softmax: rows (
func.func @short(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x32xf32>):
    %1 = "migraphx.softmax"(%a) {axis = 1 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    "migraphx.yield"(%1) : (tensor<4x32xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
