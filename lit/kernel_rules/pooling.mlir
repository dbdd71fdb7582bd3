// The rule `pooling` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::pooling: pooling (
func.func @row(%x: tensor<1x2x4xf32>) -> tensor<1x2x5xf32> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x2x4xf32>):
    %1 = "migraphx.pooling"(%a) {mode = "max", lengths = array<i64: 2>, padding = array<i64: 1>, stride = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x5xf32>
    "migraphx.yield"(%1) : (tensor<1x2x5xf32>) -> ()
  }) {tag = "pooling"} : (tensor<1x2x4xf32>) -> tensor<1x2x5xf32>
  return %0 : tensor<1x2x5xf32>
}
