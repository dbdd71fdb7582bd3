// RUN: mgx-opt %s --mgx-fuse-attention --split-input-file | filecheck %s

// Keys and values come from caches, which are written outside.
// CHECK-LABEL: @caches
// CHECK-DAG: %[[K:.*]] = "migraphx.concat_past_present"(%arg1,
// CHECK-DAG: %[[V:.*]] = "migraphx.concat_past_present"(%arg2,
// CHECK: "migraphx.group"({{.*}}) ({
// CHECK: migraphx.softmax
// CHECK: }) {tag = "kv_cache_attention"}
func.func @caches(%q: tensor<1x2x4x8xf32>, %x: tensor<1x2x1x8xf32>, %y: tensor<1x2x1x3xf32>, %n: tensor<1xi32>, %pk: tensor<1x2x6x8xf32>, %pv: tensor<1x2x6x3xf32>) -> tensor<1x2x4x3xf32> {
  %k = "migraphx.concat_past_present"(%x, %n, %pk) {kv_num_heads = 2 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %v = "migraphx.concat_past_present"(%y, %n, %pv) {kv_num_heads = 2 : i64} : (tensor<1x2x1x3xf32>, tensor<1xi32>, tensor<1x2x6x3xf32>) -> tensor<1x2x6x3xf32>
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x2x6x8xf32>) -> tensor<1x2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<1x2x4x8xf32>, tensor<1x2x8x6xf32>) -> tensor<1x2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 3 : i64} : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<1x2x4x6xf32>, tensor<1x2x6x3xf32>) -> tensor<1x2x4x3xf32>
  return %o : tensor<1x2x4x3xf32>
}

// -----

// Each head of the caches serves two of the queries'.
// CHECK-LABEL: @grouped
// CHECK: migraphx.group
// CHECK: migraphx.unsqueeze
// CHECK: migraphx.multibroadcast
// CHECK: migraphx.reshape
// CHECK: }) {tag = "kv_cache_attention"}
func.func @grouped(%q: tensor<1x4x4x8xf32>, %x: tensor<1x2x1x8xf32>, %n: tensor<1xi32>, %pk: tensor<1x2x6x8xf32>) -> tensor<1x4x4x8xf32> {
  %k = "migraphx.concat_past_present"(%x, %n, %pk) {kv_num_heads = 2 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %u = "migraphx.unsqueeze"(%k) {axes = array<i64: 2>} : (tensor<1x2x6x8xf32>) -> tensor<1x2x1x6x8xf32>
  %w = "migraphx.multibroadcast"(%u) {out_lens = array<i64: 1, 2, 2, 6, 8>} : (tensor<1x2x1x6x8xf32>) -> tensor<1x2x2x6x8xf32>
  %r = "migraphx.reshape"(%w) {dims = array<i64: 1, 4, 6, 8>} : (tensor<1x2x2x6x8xf32>) -> tensor<1x4x6x8xf32>
  %t = "migraphx.transpose"(%r) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x4x6x8xf32>) -> tensor<1x4x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<1x4x4x8xf32>, tensor<1x4x8x6xf32>) -> tensor<1x4x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 3 : i64} : (tensor<1x4x4x6xf32>) -> tensor<1x4x4x6xf32>
  %o = "migraphx.dot"(%p, %r) : (tensor<1x4x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x4x4x8xf32>
  return %o : tensor<1x4x4x8xf32>
}

// -----

// Near misses, which are attentions all the same. The values are no cache.
// CHECK-LABEL: @values
// CHECK-NOT: kv_cache_attention
// CHECK: tag = "attention"
// CHECK-NOT: kv_cache_attention
func.func @values(%q: tensor<1x2x4x8xf32>, %x: tensor<1x2x1x8xf32>, %n: tensor<1xi32>, %pk: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x3xf32>) -> tensor<1x2x4x3xf32> {
  %k = "migraphx.concat_past_present"(%x, %n, %pk) {kv_num_heads = 2 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x2x6x8xf32>) -> tensor<1x2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<1x2x4x8xf32>, tensor<1x2x8x6xf32>) -> tensor<1x2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 3 : i64} : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<1x2x4x6xf32>, tensor<1x2x6x3xf32>) -> tensor<1x2x4x3xf32>
  return %o : tensor<1x2x4x3xf32>
}

// -----

// The keys are computed from a cache.
// CHECK-LABEL: @keys
// CHECK-NOT: kv_cache_attention
// CHECK: tag = "attention"
// CHECK-NOT: kv_cache_attention
func.func @keys(%q: tensor<1x2x4x8xf32>, %x: tensor<1x2x1x8xf32>, %y: tensor<1x2x1x3xf32>, %n: tensor<1xi32>, %pk: tensor<1x2x6x8xf32>, %pv: tensor<1x2x6x3xf32>) -> tensor<1x2x4x3xf32> {
  %c = "migraphx.concat_past_present"(%x, %n, %pk) {kv_num_heads = 2 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %k = "migraphx.neg"(%c) : (tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  %v = "migraphx.concat_past_present"(%y, %n, %pv) {kv_num_heads = 2 : i64} : (tensor<1x2x1x3xf32>, tensor<1xi32>, tensor<1x2x6x3xf32>) -> tensor<1x2x6x3xf32>
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x2x6x8xf32>) -> tensor<1x2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<1x2x4x8xf32>, tensor<1x2x8x6xf32>) -> tensor<1x2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 3 : i64} : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<1x2x4x6xf32>, tensor<1x2x6x3xf32>) -> tensor<1x2x4x3xf32>
  return %o : tensor<1x2x4x3xf32>
}

// -----

// A rotary embedding of queries is part of the kernel, and the cosines of its angles are not.
// CHECK-LABEL: @angles
// CHECK: migraphx.cos
// CHECK: migraphx.sin
// CHECK: "migraphx.group"({{.*}}) ({
// CHECK-NOT: migraphx.cos
// CHECK: migraphx.concat
// CHECK: migraphx.softmax
// CHECK: }) {tag = "kv_cache_attention"}
func.func @angles(%q: tensor<1x2x4x16xf32>, %a: tensor<1x1x4x8xf32>, %x: tensor<1x2x1x16xf32>, %n: tensor<1xi32>, %pk: tensor<1x2x6x16xf32>) -> tensor<1x2x4x16xf32> {
  %k = "migraphx.concat_past_present"(%x, %n, %pk) {kv_num_heads = 2 : i64} : (tensor<1x2x1x16xf32>, tensor<1xi32>, tensor<1x2x6x16xf32>) -> tensor<1x2x6x16xf32>
  %cos = "migraphx.cos"(%a) : (tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  %sin = "migraphx.sin"(%a) : (tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  %c = "migraphx.multibroadcast"(%cos) {out_lens = array<i64: 1, 2, 4, 8>} : (tensor<1x1x4x8xf32>) -> tensor<1x2x4x8xf32>
  %d = "migraphx.multibroadcast"(%sin) {out_lens = array<i64: 1, 2, 4, 8>} : (tensor<1x1x4x8xf32>) -> tensor<1x2x4x8xf32>
  %l = "migraphx.slice"(%q) {axes = array<i64: 3>, starts = array<i64: 0>, ends = array<i64: 8>} : (tensor<1x2x4x16xf32>) -> tensor<1x2x4x8xf32>
  %r = "migraphx.slice"(%q) {axes = array<i64: 3>, starts = array<i64: 8>, ends = array<i64: 16>} : (tensor<1x2x4x16xf32>) -> tensor<1x2x4x8xf32>
  %lc = "migraphx.mul"(%l, %c) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %rd = "migraphx.mul"(%r, %d) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %u = "migraphx.sub"(%lc, %rd) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %ld = "migraphx.mul"(%l, %d) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %rc = "migraphx.mul"(%r, %c) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %w = "migraphx.add"(%ld, %rc) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %z = "migraphx.concat"(%u, %w) {axis = 3 : i64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x16xf32>
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x2x6x16xf32>) -> tensor<1x2x16x6xf32>
  %s = "migraphx.dot"(%z, %t) : (tensor<1x2x4x16xf32>, tensor<1x2x16x6xf32>) -> tensor<1x2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 3 : i64} : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %o = "migraphx.dot"(%p, %k) : (tensor<1x2x4x6xf32>, tensor<1x2x6x16xf32>) -> tensor<1x2x4x16xf32>
  return %o : tensor<1x2x4x16xf32>
}
