// The rule `attention` takes its kernel.
// RUN: mgx-opt %s --mgx-fuse-attention --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::dot_softmax_dot: attention (
func.func @heads(%q: tensor<8x32x16xf32>, %k: tensor<8x16x32xf32>, %v: tensor<8x32x16xf32>) -> tensor<8x32x16xf32> {
  %s = "migraphx.dot"(%q, %k) : (tensor<8x32x16xf32>, tensor<8x16x32xf32>) -> tensor<8x32x32xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<8x32x32xf32>) -> tensor<8x32x32xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<8x32x32xf32>, tensor<8x32x16xf32>) -> tensor<8x32x16xf32>
  return %o : tensor<8x32x16xf32>
}
