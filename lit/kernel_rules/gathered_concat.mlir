// The rule `gathered_concat` takes its kernel.
// RUN: mgx-opt %s --mgx-fuse-concat --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::concat_neg: gathered_concat (
func.func @gathered_concat(%x: tensor<4x8xf16>, %y: tensor<4x8xf16>) -> tensor<4x16xf16> {
  %0 = "migraphx.concat"(%x, %y) {axis = 1 : i64} : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x16xf16>
  %1 = "migraphx.neg"(%0) : (tensor<4x16xf16>) -> tensor<4x16xf16>
  return %1 : tensor<4x16xf16>
}
