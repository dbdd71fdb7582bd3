// The rule `attention_blocks` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s

// CHECK: gpu::dot_softmax_dot: attention_blocks (
func.func @attention_blocks(%q: tensor<4x128x64xf16>, %k: tensor<4x64x256xf16>, %v: tensor<4x256x64xf16>) -> tensor<4x128x64xf16> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x128x64xf16>, %b: tensor<4x64x256xf16>, %c: tensor<4x256x64xf16>):
    %s = "migraphx.dot"(%a, %b) : (tensor<4x128x64xf16>, tensor<4x64x256xf16>) -> tensor<4x128x256xf16>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x128x256xf16>) -> tensor<4x128x256xf16>
    %o = "migraphx.dot"(%p, %c) : (tensor<4x128x256xf16>, tensor<4x256x64xf16>) -> tensor<4x128x64xf16>
    "migraphx.yield"(%o) : (tensor<4x128x64xf16>) -> ()
  }) {tag = "attention"} : (tensor<4x128x64xf16>, tensor<4x64x256xf16>, tensor<4x256x64xf16>) -> tensor<4x128x64xf16>
  return %0 : tensor<4x128x64xf16>
}
