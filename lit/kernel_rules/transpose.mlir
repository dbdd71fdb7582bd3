// The rule `transpose` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::copy: transpose (
func.func @main(%x: tensor<?x?xi64>) -> tensor<?x?xi64> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<?x?xi64>):
    %1 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<?x?xi64>) -> tensor<?x?xi64>
    "migraphx.yield"(%1) : (tensor<?x?xi64>) -> ()
  }) {tag = "transpose"} : (tensor<?x?xi64>) -> tensor<?x?xi64>
  return %0 : tensor<?x?xi64>
}
