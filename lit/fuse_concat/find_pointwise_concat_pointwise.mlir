// RUN: mgx-opt %s --mgx-fuse-concat --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-name-dynamic-dims --mgx-fuse-concat='dynamic=true' --mgx-forget-dynamic-dims --split-input-file | filecheck %s --check-prefix=DYN

// A rotary embedding: the halves of each row change places, one of them negative.
// CHECK-LABEL: @rotary
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_concat"({{.*}}) ({
// CHECK: migraphx.neg
// CHECK: migraphx.concat
// CHECK: migraphx.mul
// CHECK: migraphx.add
// CHECK: }) {axis = 2 : i64}
// CHECK-NEXT: return %[[K]]
func.func @rotary(%x: tensor<2x3x16xf32>, %cos: tensor<3x16xf32>, %sin: tensor<3x16xf32>) -> tensor<2x3x16xf32> {
  %a = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 0>, ends = array<i64: 8>} : (tensor<2x3x16xf32>) -> tensor<2x3x8xf32>
  %b = "migraphx.slice"(%x) {axes = array<i64: 2>, starts = array<i64: 8>, ends = array<i64: 16>} : (tensor<2x3x16xf32>) -> tensor<2x3x8xf32>
  %n = "migraphx.neg"(%b) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %c = "migraphx.concat"(%n, %a) {axis = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x16xf32>
  %cw = "migraphx.multibroadcast"(%cos) {out_lens = array<i64: 2, 3, 16>} : (tensor<3x16xf32>) -> tensor<2x3x16xf32>
  %sw = "migraphx.multibroadcast"(%sin) {out_lens = array<i64: 2, 3, 16>} : (tensor<3x16xf32>) -> tensor<2x3x16xf32>
  %xc = "migraphx.mul"(%x, %cw) : (tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> tensor<2x3x16xf32>
  %cs = "migraphx.mul"(%c, %sw) : (tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> tensor<2x3x16xf32>
  %o = "migraphx.add"(%xc, %cs) : (tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> tensor<2x3x16xf32>
  return %o : tensor<2x3x16xf32>
}

// -----

// Only parts are computed; one reads a transposed tensor, its last dim as it was.
// CHECK-LABEL: @before
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_concat"({{.*}}) ({
// CHECK: migraphx.transpose
// CHECK: migraphx.relu
// CHECK: migraphx.concat
// CHECK: return %[[K]]
func.func @before(%x: tensor<3x2x8xi32>, %y: tensor<2x3x16xi32>) -> tensor<2x3x24xi32> {
  %t = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0, 2>} : (tensor<3x2x8xi32>) -> tensor<2x3x8xi32>
  %r = "migraphx.relu"(%t) : (tensor<2x3x8xi32>) -> tensor<2x3x8xi32>
  %c = "migraphx.concat"(%r, %y) {axis = 2 : i64} : (tensor<2x3x8xi32>, tensor<2x3x16xi32>) -> tensor<2x3x24xi32>
  return %c : tensor<2x3x24xi32>
}

// -----

// Near misses. The parts are read elsewhere too: nothing is left that only this one reads.
// CHECK-LABEL: @used
// CHECK-NOT: migraphx.fused_concat
func.func @used(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>) -> (tensor<5x8xf32>, tensor<2x8xf32>) {
  %r = "migraphx.relu"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %c = "migraphx.concat"(%r, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  return %c, %r : tensor<5x8xf32>, tensor<2x8xf32>
}

// -----

// The part is computed from a dot: it stays with that.
// CHECK-LABEL: @of_a_dot
// CHECK-NOT: migraphx.fused_concat
func.func @of_a_dot(%a: tensor<2x4xf32>, %b: tensor<4x8xf32>, %y: tensor<3x8xf32>) -> tensor<5x8xf32> {
  %d = "migraphx.dot"(%a, %b) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %r = "migraphx.relu"(%d) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %c = "migraphx.concat"(%r, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  return %c : tensor<5x8xf32>
}

// -----

// Neighbours of the result are not next to each other in the transposed operand.
// CHECK-LABEL: @turned
// CHECK-NOT: migraphx.fused_concat
func.func @turned(%x: tensor<8x2xf32>, %y: tensor<3x8xf32>) -> tensor<5x8xf32> {
  %t = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<8x2xf32>) -> tensor<2x8xf32>
  %r = "migraphx.relu"(%t) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %c = "migraphx.concat"(%r, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  return %c : tensor<5x8xf32>
}

// -----

// A part is computed once for two readers, one of which reads a view of it.
// CHECK-LABEL: @read_through_a_view
// CHECK: %[[N:.*]] = "migraphx.neg"
// CHECK: "migraphx.fused_concat"
// CHECK: migraphx.relu
// CHECK-NOT: migraphx.neg
// CHECK: return
func.func @read_through_a_view(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>) -> (tensor<5x8xf32>, tensor<2x8xf32>) {
  %n = "migraphx.neg"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %v = "migraphx.reshape"(%n) {dims = array<i64: 1, 16>} : (tensor<2x8xf32>) -> tensor<1x16xf32>
  %w = "migraphx.reshape"(%v) {dims = array<i64: 2, 8>} : (tensor<1x16xf32>) -> tensor<2x8xf32>
  %r = "migraphx.relu"(%w) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %c = "migraphx.concat"(%r, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %e = "migraphx.exp"(%v) : (tensor<1x16xf32>) -> tensor<1x16xf32>
  %f = "migraphx.reshape"(%e) {dims = array<i64: 2, 8>} : (tensor<1x16xf32>) -> tensor<2x8xf32>
  return %c, %f : tensor<5x8xf32>, tensor<2x8xf32>
}

// -----

// Rows of a dynamic number, concatenated along a fixed dim: a kernel with the option alone. It
// keeps the equality of its operands' dims.
// CHECK-LABEL: @rows
// CHECK-NOT: migraphx.fused_concat
// DYN-LABEL: @rows
// DYN: "migraphx.fused_concat"
// DYN: migraphx.neg
// DYN: migraphx.concat
// DYN: }) {axis = 2 : i64, extents = ["d0, d1, 8"]}
func.func @rows(%x: tensor<?x?x8xf32>) -> tensor<?x?x16xf32> {
  %n = "migraphx.neg"(%x) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %c = "migraphx.concat"(%n, %x) {axis = 2 : i64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x16xf32>
  return %c : tensor<?x?x16xf32>
}

// -----

// The dynamic dim is the concatenated one.
// DYN-LABEL: @lengths
// DYN-NOT: migraphx.fused_concat
func.func @lengths(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = "migraphx.neg"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %c = "migraphx.concat"(%n, %y) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
