// The rule `recurrent` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::gru_steps: recurrent (
func.func @gru(%x: tensor<?x1x51xf32>) -> tensor<?x1x1x17xf32> {
  %w = "migraphx.literal"() {value = dense<0.1> : tensor<1x51x17xf32>} : () -> tensor<1x51x17xf32>
  %0 = "migraphx.gru_steps"(%x, %w) {hidden_size = 17 : i64} : (tensor<?x1x51xf32>, tensor<1x51x17xf32>) -> tensor<?x1x1x17xf32>
  return %0 : tensor<?x1x1x17xf32>
}
