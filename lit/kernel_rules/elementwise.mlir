// The rule `elementwise` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::tanh: elementwise (
func.func @dynamic(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<?x3xf32>):
    %1 = "migraphx.tanh"(%a) : (tensor<?x3xf32>) -> tensor<?x3xf32>
    "migraphx.yield"(%1) : (tensor<?x3xf32>) -> ()
  }) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
