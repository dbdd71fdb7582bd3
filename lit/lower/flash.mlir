// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --split-input-file | filecheck %s

// One query: its row is a dim of the operand, though the tensor that is read has none.
// CHECK: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
// CHECK: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
// CHECK-LABEL: @main(
// CHECK: "iree_linalg_ext.attention"
// CHECK: indexing_maps = [#[[Q]], #{{.*}}, #{{.*}}, #{{.*}}, #[[O]]]
// CHECK-SAME: tensor<4x1x8xf32>, tensor<4x8x6xf32>, tensor<4x6x8xf32>
func.func @one_row(%q: tensor<4x8xf32>, %k: tensor<4x8x6xf32>, %v: tensor<4x6x8xf32>) -> tensor<4x1x8xf32> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8x6xf32>, %c: tensor<4x6x8xf32>):
    %u = "migraphx.unsqueeze"(%a) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1x8xf32>
    %s = "migraphx.dot"(%u, %b) : (tensor<4x1x8xf32>, tensor<4x8x6xf32>) -> tensor<4x1x6xf32>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x1x6xf32>) -> tensor<4x1x6xf32>
    %o = "migraphx.dot"(%p, %c) : (tensor<4x1x6xf32>, tensor<4x6x8xf32>) -> tensor<4x1x8xf32>
    "migraphx.yield"(%o) : (tensor<4x1x8xf32>) -> ()
  }) {tag = "attention"} : (tensor<4x8xf32>, tensor<4x8x6xf32>, tensor<4x6x8xf32>) -> tensor<4x1x8xf32>
  return %0 : tensor<4x1x8xf32>
}

// -----

// The same query for each of five rows: only a tensor says how many there are.
// CHECK-LABEL: @main(
// CHECK: "iree_linalg_ext.attention"
// CHECK: indexing_maps = {{.*}}tensor<4x5x8xf32>, tensor<4x8x6xf32>, tensor<4x6x8xf32>
func.func @equal_rows(%q: tensor<4x1x8xf32>, %k: tensor<4x8x6xf32>, %v: tensor<4x6x8xf32>) -> tensor<4x5x8xf32> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x1x8xf32>, %b: tensor<4x8x6xf32>, %c: tensor<4x6x8xf32>):
    %u = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 4, 5, 8>} : (tensor<4x1x8xf32>) -> tensor<4x5x8xf32>
    %s = "migraphx.dot"(%u, %b) : (tensor<4x5x8xf32>, tensor<4x8x6xf32>) -> tensor<4x5x6xf32>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
    %o = "migraphx.dot"(%p, %c) : (tensor<4x5x6xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
    "migraphx.yield"(%o) : (tensor<4x5x8xf32>) -> ()
  }) {tag = "attention"} : (tensor<4x1x8xf32>, tensor<4x8x6xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  return %0 : tensor<4x5x8xf32>
}

// -----

// Slices of what lies transposed are read where they stand: nothing is copied.
// CHECK-DAG: #[[KEYS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d2)>
// CHECK-LABEL: @main(
// CHECK: tensor.extract_slice %arg1[0, 4, 0] [6, 4, 8] [1, 1, 1]
// CHECK: tensor.extract_slice %arg1[0, 8, 0] [6, 4, 8] [1, 1, 1]
// CHECK-NOT: linalg.generic
// CHECK: "iree_linalg_ext.attention"
// CHECK: indexing_maps = [#{{.*}}, #[[KEYS]],
func.func @slices(%q: tensor<4x2x8xf32>, %x: tensor<6x12x8xf32>) -> tensor<4x2x8xf32> {
  %0 = "migraphx.group"(%q, %x) ({
  ^bb0(%a: tensor<4x2x8xf32>, %b: tensor<6x12x8xf32>):
    %t = "migraphx.transpose"(%b) {permutation = array<i64: 1, 2, 0>} : (tensor<6x12x8xf32>) -> tensor<12x8x6xf32>
    %k = "migraphx.slice"(%t) {axes = array<i64: 0>, starts = array<i64: 4>, ends = array<i64: 8>} : (tensor<12x8x6xf32>) -> tensor<4x8x6xf32>
    %w = "migraphx.reshape"(%b) {dims = array<i64: 1, 6, 12, 8>} : (tensor<6x12x8xf32>) -> tensor<1x6x12x8xf32>
    %y = "migraphx.transpose"(%w) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x6x12x8xf32>) -> tensor<1x12x6x8xf32>
    %u = "migraphx.reshape"(%y) {dims = array<i64: 12, 6, 8>} : (tensor<1x12x6x8xf32>) -> tensor<12x6x8xf32>
    %v = "migraphx.slice"(%u) {axes = array<i64: -3>, starts = array<i64: -4>, ends = array<i64: 12>} : (tensor<12x6x8xf32>) -> tensor<4x6x8xf32>
    %s = "migraphx.dot"(%a, %k) : (tensor<4x2x8xf32>, tensor<4x8x6xf32>) -> tensor<4x2x6xf32>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x2x6xf32>) -> tensor<4x2x6xf32>
    %o = "migraphx.dot"(%p, %v) : (tensor<4x2x6xf32>, tensor<4x6x8xf32>) -> tensor<4x2x8xf32>
    "migraphx.yield"(%o) : (tensor<4x2x8xf32>) -> ()
  }) {tag = "attention"} : (tensor<4x2x8xf32>, tensor<6x12x8xf32>) -> tensor<4x2x8xf32>
  return %0 : tensor<4x2x8xf32>
}

// -----

// One query of heads that share their keys: the compiler would copy these for each lane.
// CHECK-LABEL: @main(
// CHECK-NOT: iree_linalg_ext.attention
func.func @shared_keys(%q: tensor<4x1x8xf32>, %k: tensor<2x1x8x6xf32>, %v: tensor<4x6x8xf32>) -> tensor<4x1x8xf32> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x1x8xf32>, %b: tensor<2x1x8x6xf32>, %c: tensor<4x6x8xf32>):
    %u = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 2, 8, 6>} : (tensor<2x1x8x6xf32>) -> tensor<2x2x8x6xf32>
    %r = "migraphx.reshape"(%u) {dims = array<i64: 4, 8, 6>} : (tensor<2x2x8x6xf32>) -> tensor<4x8x6xf32>
    %s = "migraphx.dot"(%a, %r) : (tensor<4x1x8xf32>, tensor<4x8x6xf32>) -> tensor<4x1x6xf32>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x1x6xf32>) -> tensor<4x1x6xf32>
    %o = "migraphx.dot"(%p, %c) : (tensor<4x1x6xf32>, tensor<4x6x8xf32>) -> tensor<4x1x8xf32>
    "migraphx.yield"(%o) : (tensor<4x1x8xf32>) -> ()
  }) {tag = "attention"} : (tensor<4x1x8xf32>, tensor<2x1x8x6xf32>, tensor<4x6x8xf32>) -> tensor<4x1x8xf32>
  return %0 : tensor<4x1x8xf32>
}

// -----

// A dynamic batch and dynamic lengths: tiles of 64 queries and blocks of 64 keys, whose numbers the run
// counts. Keys beyond the last are masked; what their queries give is cut off behind the kernel.
// CHECK-LABEL: @main(
// CHECK: flow.dispatch.region
// CHECK: arith.minui
// CHECK: arith.select {{.*}} : f16
// CHECK: "iree_linalg_ext.attention"
// CHECK: workgroup = [1, 1, 1, 64, 0, 0, 0, 64]
// CHECK-SAME: tensor<?x2x?x64x64xf16>, tensor<?x2x?x64x64xf16>, tensor<?x2x?x64x64xf16>, f16, tensor<?x64xf16>
// CHECK: tensor.extract_slice
func.func @dynamic_dims(%q: tensor<?x2x?x64xf16>, %k: tensor<?x2x64x?xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<?x2x?x64xf16>, %b: tensor<?x2x64x?xf16>, %c: tensor<?x2x?x64xf16>):
    %s = "migraphx.dot"(%a, %b) : (tensor<?x2x?x64xf16>, tensor<?x2x64x?xf16>) -> tensor<?x2x?x?xf16>
    %p = "migraphx.softmax"(%s) {axis = 3 : i64} : (tensor<?x2x?x?xf16>) -> tensor<?x2x?x?xf16>
    %o = "migraphx.dot"(%p, %c) : (tensor<?x2x?x?xf16>, tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16>
    "migraphx.yield"(%o) : (tensor<?x2x?x64xf16>) -> ()
  }) {tag = "attention", extents = ["d0, 2, d1, 64", "d0, 2, 64, d2", "d0, 2, d2, 64"]} : (tensor<?x2x?x64xf16>, tensor<?x2x64x?xf16>, tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16>
  return %0 : tensor<?x2x?x64xf16>
}
