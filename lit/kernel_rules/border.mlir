// The rule `border` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::pad: border (
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %0 = "migraphx.pad"(%x) {mode = "reflect", pads = array<i64: 0, 1, 0, 2>, value = 0.0 : f64} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}
