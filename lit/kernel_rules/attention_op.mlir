// The rule `attention_op` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::dot_softmax_dot: attention_op (
func.func @attention_op(%q: tensor<4x64x64xf32>, %k: tensor<4x64x64xf32>, %v: tensor<4x64x64xf32>) -> tensor<4x64x64xf32> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x64x64xf32>, %b: tensor<4x64x64xf32>, %c: tensor<4x64x64xf32>):
    %s = "migraphx.dot"(%a, %b) : (tensor<4x64x64xf32>, tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
    %o = "migraphx.dot"(%p, %c) : (tensor<4x64x64xf32>, tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
    "migraphx.yield"(%o) : (tensor<4x64x64xf32>) -> ()
  }) {tag = "attention"} : (tensor<4x64x64xf32>, tensor<4x64x64xf32>, tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  return %0 : tensor<4x64x64xf32>
}
