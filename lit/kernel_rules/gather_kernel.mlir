// The rule `gather_kernel` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::gather: gather_kernel (
func.func @rows(%x: tensor<100x64xf32>, %i: tensor<7xi64>) -> tensor<7x64xf32> {
  %0 = "migraphx.group"(%x, %i) ({
  ^bb0(%a: tensor<100x64xf32>, %b: tensor<7xi64>):
    %1 = "migraphx.gather"(%a, %b) {axis = 0 : i64} : (tensor<100x64xf32>, tensor<7xi64>) -> tensor<7x64xf32>
    "migraphx.yield"(%1) : (tensor<7x64xf32>) -> ()
  }) {tag = "gather"} : (tensor<100x64xf32>, tensor<7xi64>) -> tensor<7x64xf32>
  return %0 : tensor<7x64xf32>
}
