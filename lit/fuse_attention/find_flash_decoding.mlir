// RUN: mgx-opt %s --mgx-fuse-attention=splits=2 --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-attention="splits=-1 min-chunk=2 threshold=6" --split-input-file | filecheck %s --check-prefix=FIT

// Six keys in two parts: their results are added by their share of the whole sum. A part without keys
// (its largest score is -inf) has no share.
// CHECK-LABEL: @two_parts
// CHECK: %[[K:.*]]:2 = "migraphx.group"({{.*}}) ({
// CHECK: %[[S:.*]] = "migraphx.dot"({{.*}}) -> tensor<2x2x4x3xf32>
// CHECK: "migraphx.reduce_max"(%[[S]]) {axes = array<i64: 3>}
// CHECK: 0xFF800000
// CHECK: migraphx.log
// CHECK: }) {tag = "flash_decoding"} {{.*}} -> (tensor<2x2x4x3xf32>, tensor<2x2x4x1xf32>)
// CHECK: "migraphx.reduce_max"(%[[K]]#1) {axes = array<i64: 1>}
// CHECK: "migraphx.mul"(%[[K]]#0,
// CHECK: "migraphx.reduce_sum"({{.*}}) {axes = array<i64: 1>}
// CHECK-NOT: tag = "attention"
// As many parts of two keys and more as there can be: three.
// FIT-LABEL: @two_parts
// FIT: }) {tag = "flash_decoding"} {{.*}} -> (tensor<2x3x4x3xf32>, tensor<2x3x4x1xf32>)
func.func @two_parts(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// Masks are cut too; what follows the attention stays behind the sum of the parts.
// CHECK-LABEL: @masked
// CHECK: "migraphx.multibroadcast"(%arg3)
// CHECK: migraphx.reshape
// CHECK: tag = "flash_decoding"
// CHECK: migraphx.reduce_sum
// CHECK: "migraphx.transpose"({{.*}}) {permutation = array<i64: 1, 0, 2>}
func.func @masked(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>, %m: tensor<6xf32>) -> tensor<4x2x3xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %mw = "migraphx.multibroadcast"(%m) {out_lens = array<i64: 2, 4, 6>} : (tensor<6xf32>) -> tensor<2x4x6xf32>
  %a = "migraphx.add"(%s, %mw) : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%a) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  %x = "migraphx.transpose"(%o) {permutation = array<i64: 1, 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  return %x : tensor<4x2x3xf32>
}

// -----

// Sums of 16-bit attentions are f32.
// CHECK-LABEL: @half
// CHECK: }) {tag = "flash_decoding"} {{.*}} -> (tensor<2x4x3xf16>, tensor<2x4x1xf32>)
func.func @half(%q: tensor<4x8xf16>, %t: tensor<8x6xf16>, %v: tensor<6x3xf16>) -> tensor<4x3xf16> {
  %s = "migraphx.dot"(%q, %t) : (tensor<4x8xf16>, tensor<8x6xf16>) -> tensor<4x6xf16>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<4x6xf16>) -> tensor<4x6xf16>
  %o = "migraphx.dot"(%p, %v) : (tensor<4x6xf16>, tensor<6x3xf16>) -> tensor<4x3xf16>
  return %o : tensor<4x3xf16>
}

// -----

// Near misses. Seven keys are not two equal parts.
// CHECK-LABEL: @odd
// CHECK-NOT: flash_decoding
// CHECK: tag = "attention"
// CHECK-NOT: flash_decoding
// FIT-LABEL: @odd
// FIT-NOT: flash_decoding
// FIT: tag = "attention"
func.func @odd(%q: tensor<4x8xf32>, %t: tensor<8x7xf32>, %v: tensor<7x3xf32>) -> tensor<4x3xf32> {
  %s = "migraphx.dot"(%q, %t) : (tensor<4x8xf32>, tensor<8x7xf32>) -> tensor<4x7xf32>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<4x7xf32>, tensor<7x3xf32>) -> tensor<4x3xf32>
  return %o : tensor<4x3xf32>
}

// -----

// No attention.
// CHECK-LABEL: @dot
// CHECK-NOT: flash_decoding
func.func @dot(%q: tensor<4x8xf32>, %t: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %s = "migraphx.dot"(%q, %t) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %s : tensor<4x6xf32>
}
