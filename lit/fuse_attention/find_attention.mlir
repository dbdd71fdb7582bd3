// RUN: mgx-opt %s --mgx-fuse-attention --split-input-file | filecheck %s

// Scores, softmax and weighted sum; the transpose of the keys goes inside.
// CHECK-LABEL: @plain
// CHECK-NEXT: %[[K:.*]] = "migraphx.group"({{.*}}) ({
// CHECK: migraphx.transpose
// CHECK-NEXT: migraphx.dot
// CHECK-NEXT: migraphx.softmax
// CHECK-NEXT: migraphx.dot
// CHECK: }) {tag = "attention"}
// CHECK-NEXT: return %[[K]]
func.func @plain(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = -1 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// Factors of q and k become one of the scores: 0.5 * 0.25. Masks and their broadcasts go inside.
// CHECK-LABEL: @scaled_and_masked
// CHECK: "migraphx.group"({{.*}}) ({
// CHECK: %[[S:.*]] = "migraphx.dot"
// CHECK: dense<1.250000e-01>
// CHECK: %[[M:.*]] = "migraphx.mul"(%[[S]],
// CHECK: %[[A:.*]] = "migraphx.add"(%[[M]],
// CHECK: "migraphx.softmax"(%[[A]])
// CHECK-NOT: 2.500000e-01
// CHECK: tag = "attention"
func.func @scaled_and_masked(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>, %m: tensor<1x1x6xf32>) -> tensor<2x4x3xf32> {
  %a = "migraphx.literal"() {value = dense<0.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %b = "migraphx.literal"() {value = dense<0.25> : tensor<1xf32>} : () -> tensor<1xf32>
  %aw = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 4, 8>} : (tensor<1xf32>) -> tensor<2x4x8xf32>
  %bw = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 6, 8>} : (tensor<1xf32>) -> tensor<2x6x8xf32>
  %qs = "migraphx.mul"(%q, %aw) : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %ks = "migraphx.mul"(%k, %bw) : (tensor<2x6x8xf32>, tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  %t = "migraphx.transpose"(%ks) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%qs, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %mw = "migraphx.multibroadcast"(%m) {out_lens = array<i64: 2, 4, 6>} : (tensor<1x1x6xf32>) -> tensor<2x4x6xf32>
  %sm = "migraphx.add"(%s, %mw) : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%sm) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// One scaled tensor is queries, keys and values: the values stay scaled, the factor counts for
// queries and keys both.
// CHECK-LABEL: @shared
// CHECK: %[[X:.*]] = "migraphx.mul"(%arg0,
// CHECK: "migraphx.group"(%[[X]]) ({
// CHECK-NOT: migraphx.mul
// CHECK: tag = "attention"
func.func @shared(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = "migraphx.literal"() {value = dense<0.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %aw = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 4, 8>} : (tensor<1xf32>) -> tensor<4x8xf32>
  %y = "migraphx.mul"(%x, %aw) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = "migraphx.transpose"(%y) {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %s = "migraphx.dot"(%y, %t) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %o = "migraphx.dot"(%p, %y) : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @shared_scale_twice
// CHECK: "migraphx.group"({{.*}}) ({
// CHECK: %[[S:.*]] = "migraphx.dot"(%[[X:.*]], %{{.*}})
// CHECK: dense<2.500000e-01>
// CHECK: "migraphx.mul"(%[[S]],
// CHECK: tag = "attention"
func.func @shared_scale_twice(%x: tensor<4x8xf32>, %v: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %a = "migraphx.literal"() {value = dense<0.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %aw = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 4, 8>} : (tensor<1xf32>) -> tensor<4x8xf32>
  %y = "migraphx.mul"(%x, %aw) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = "migraphx.transpose"(%y) {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %s = "migraphx.dot"(%y, %t) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %o : tensor<4x2xf32>
}

// -----

// A bool mask by where; the number it puts is inside. Keys that several heads share are read through
// their broadcast.
// CHECK-LABEL: @where_and_groups
// CHECK: "migraphx.group"({{.*}}) ({
// CHECK: migraphx.multibroadcast
// CHECK: migraphx.dot
// CHECK: migraphx.where
// CHECK-NEXT: migraphx.softmax
// CHECK: tag = "attention"
func.func @where_and_groups(%q: tensor<2x4x8xf32>, %k: tensor<1x6x8xf32>, %v: tensor<2x6x3xf32>, %m: tensor<4x6xi1>) -> tensor<2x4x3xf32> {
  %l = "migraphx.literal"() {value = dense<0xFF800000> : tensor<1xf32>} : () -> tensor<1xf32>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 2, 4, 6>} : (tensor<1xf32>) -> tensor<2x4x6xf32>
  %kw = "migraphx.multibroadcast"(%k) {out_lens = array<i64: 2, 6, 8>} : (tensor<1x6x8xf32>) -> tensor<2x6x8xf32>
  %t = "migraphx.transpose"(%kw) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %mw = "migraphx.multibroadcast"(%m) {out_lens = array<i64: 2, 4, 6>} : (tensor<4x6xi1>) -> tensor<2x4x6xi1>
  %sm = "migraphx.where"(%mw, %s, %lw) : (tensor<2x4x6xi1>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%sm) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// 16-bit attention with its softmax in f32.
// CHECK-LABEL: @in_f32
// CHECK: "migraphx.group"({{.*}}) ({
// CHECK: migraphx.convert
// CHECK-NEXT: migraphx.softmax
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.dot
// CHECK: tag = "attention"
func.func @in_f32(%q: tensor<4x8xf16>, %t: tensor<8x6xf16>, %v: tensor<6x3xf16>) -> tensor<4x3xf16> {
  %s = "migraphx.dot"(%q, %t) : (tensor<4x8xf16>, tensor<8x6xf16>) -> tensor<4x6xf16>
  %sc = "migraphx.convert"(%s) {target_type = f32} : (tensor<4x6xf16>) -> tensor<4x6xf32>
  %p = "migraphx.softmax"(%sc) {axis = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %pc = "migraphx.convert"(%p) {target_type = f16} : (tensor<4x6xf32>) -> tensor<4x6xf16>
  %o = "migraphx.dot"(%pc, %v) : (tensor<4x6xf16>, tensor<6x3xf16>) -> tensor<4x3xf16>
  return %o : tensor<4x3xf16>
}

// -----

// Near misses. The softmax is over the queries.
// CHECK-LABEL: @wrong_axis
// CHECK-NOT: migraphx.group
func.func @wrong_axis(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// The weights are read elsewhere too.
// CHECK-LABEL: @weights_read
// CHECK-NOT: migraphx.group
func.func @weights_read(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x4x6xf32>) {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o, %p : tensor<2x4x3xf32>, tensor<2x4x6xf32>
}

// -----

// The scores are read elsewhere too.
// CHECK-LABEL: @scores_read
// CHECK-NOT: migraphx.group
func.func @scores_read(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x4x6xf32>) {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o, %s : tensor<2x4x3xf32>, tensor<2x4x6xf32>
}

// -----

// The softmax is the right operand.
// CHECK-LABEL: @right_operand
// CHECK-NOT: migraphx.group
func.func @right_operand(%q: tensor<4x8xf32>, %t: tensor<8x6xf32>, %v: tensor<3x4xf32>) -> tensor<3x6xf32> {
  %s = "migraphx.dot"(%q, %t) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %o = "migraphx.dot"(%v, %p) : (tensor<3x4xf32>, tensor<4x6xf32>) -> tensor<3x6xf32>
  return %o : tensor<3x6xf32>
}

// -----

// No first dot.
// CHECK-LABEL: @no_dot
// CHECK-NOT: migraphx.group
func.func @no_dot(%s: tensor<2x4x6xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %r = "migraphx.relu"(%s) : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%r) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// f64: no kernel. Nor with a softmax in f64.
// CHECK-LABEL: @f64
// CHECK-NOT: migraphx.group
func.func @f64(%q: tensor<4x8xf64>, %t: tensor<8x6xf64>, %v: tensor<6x3xf64>) -> tensor<4x3xf64> {
  %s = "migraphx.dot"(%q, %t) : (tensor<4x8xf64>, tensor<8x6xf64>) -> tensor<4x6xf64>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<4x6xf64>) -> tensor<4x6xf64>
  %o = "migraphx.dot"(%p, %v) : (tensor<4x6xf64>, tensor<6x3xf64>) -> tensor<4x3xf64>
  return %o : tensor<4x3xf64>
}

// -----

// CHECK-LABEL: @in_f64
// CHECK-NOT: migraphx.group
func.func @in_f64(%q: tensor<4x8xf32>, %t: tensor<8x6xf32>, %v: tensor<6x3xf32>) -> tensor<4x3xf32> {
  %s = "migraphx.dot"(%q, %t) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %sc = "migraphx.convert"(%s) {target_type = f64} : (tensor<4x6xf32>) -> tensor<4x6xf64>
  %p = "migraphx.softmax"(%sc) {axis = 1 : i64} : (tensor<4x6xf64>) -> tensor<4x6xf64>
  %pc = "migraphx.convert"(%p) {target_type = f32} : (tensor<4x6xf64>) -> tensor<4x6xf32>
  %o = "migraphx.dot"(%pc, %v) : (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>
  return %o : tensor<4x3xf32>
}

// -----

// Run-time dims.
// CHECK-LABEL: @dynamic
// CHECK-NOT: migraphx.group
func.func @dynamic(%q: tensor<?x8xf32>, %t: tensor<8x6xf32>, %v: tensor<6x3xf32>) -> tensor<?x3xf32> {
  %s = "migraphx.dot"(%q, %t) : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<?x6xf32>, tensor<6x3xf32>) -> tensor<?x3xf32>
  return %o : tensor<?x3xf32>
}

// -----

// Zeros for NaN: values that are NaN would become zeros too, so it takes fast-math.
// CHECK-LABEL: @guarded
// CHECK-NOT: migraphx.group
func.func @guarded(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %z = "migraphx.literal"() {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %zw = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 4, 6>} : (tensor<1xf32>) -> tensor<2x4x6xf32>
  %n = "migraphx.isnan"(%p) : (tensor<2x4x6xf32>) -> tensor<2x4x6xi1>
  %g = "migraphx.where"(%n, %zw, %p) : (tensor<2x4x6xi1>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%g, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}
