// The rule `prefix_scan` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::prefix_scan_sum: prefix_scan (
func.func @running_sum(%x: tensor<9x64xf32>) -> tensor<9x64xf32> {
  %0 = "migraphx.prefix_scan_sum"(%x) {axis = 0 : i64} : (tensor<9x64xf32>) -> tensor<9x64xf32>
  return %0 : tensor<9x64xf32>
}
