// The rule `attention_parts` takes its kernel, of fixed and of dynamic dims.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels --split-input-file 2>&1 | filecheck %s

// CHECK: gpu::dot_softmax_dot: attention_parts (
func.func @fixed(%q: tensor<4x1x64xf16>, %k: tensor<4x64x512xf16>, %v: tensor<4x512x64xf16>) -> tensor<4x1x64xf16> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x1x64xf16>, %b: tensor<4x64x512xf16>, %c: tensor<4x512x64xf16>):
    %s = "migraphx.dot"(%a, %b) : (tensor<4x1x64xf16>, tensor<4x64x512xf16>) -> tensor<4x1x512xf16>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x1x512xf16>) -> tensor<4x1x512xf16>
    %o = "migraphx.dot"(%p, %c) : (tensor<4x1x512xf16>, tensor<4x512x64xf16>) -> tensor<4x1x64xf16>
    "migraphx.yield"(%o) : (tensor<4x1x64xf16>) -> ()
  }) {tag = "attention"} : (tensor<4x1x64xf16>, tensor<4x64x512xf16>, tensor<4x512x64xf16>) -> tensor<4x1x64xf16>
  return %0 : tensor<4x1x64xf16>
}

// -----

// CHECK: gpu::dot_softmax_dot: attention_parts (
func.func @dynamic(%q: tensor<?x2x1x64xf16>, %k: tensor<?x2x64x?xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x2x1x64xf16> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<?x2x1x64xf16>, %b: tensor<?x2x64x?xf16>, %c: tensor<?x2x?x64xf16>):
    %s = "migraphx.dot"(%a, %b) : (tensor<?x2x1x64xf16>, tensor<?x2x64x?xf16>) -> tensor<?x2x1x?xf16>
    %p = "migraphx.softmax"(%s) {axis = 3 : i64} : (tensor<?x2x1x?xf16>) -> tensor<?x2x1x?xf16>
    %o = "migraphx.dot"(%p, %c) : (tensor<?x2x1x?xf16>, tensor<?x2x?x64xf16>) -> tensor<?x2x1x64xf16>
    "migraphx.yield"(%o) : (tensor<?x2x1x64xf16>) -> ()
  }) {tag = "attention", extents = ["d0, 2, 1, 64", "d0, 2, 64, d2", "d0, 2, d2, 64"]} : (tensor<?x2x1x64xf16>, tensor<?x2x64x?xf16>, tensor<?x2x?x64xf16>) -> tensor<?x2x1x64xf16>
  return %0 : tensor<?x2x1x64xf16>
}
