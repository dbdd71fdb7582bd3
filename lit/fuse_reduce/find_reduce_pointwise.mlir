// RUN: mgx-opt %s --mgx-fuse-reduce --split-input-file | filecheck %s

// Rows, and rows over all the elements, behind the reduction.
// CHECK-LABEL: @after
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_reduce"(%arg0) ({
// CHECK: migraphx.reduce_mean
// CHECK: migraphx.neg
// CHECK: migraphx.multibroadcast
// CHECK-NEXT: migraphx.add
// CHECK: return %[[K]]
func.func @after(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = "migraphx.reduce_mean"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %n = "migraphx.neg"(%r) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %w = "migraphx.multibroadcast"(%n) {out_lens = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %o = "migraphx.add"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %o : tensor<2x3xf32>
}

// -----

// Near misses. More rows than the reduction has.
// CHECK-LABEL: @wider
// CHECK: migraphx.fused_reduce
// CHECK: migraphx.pointwise
func.func @wider(%x: tensor<2x3xf32>, %y: tensor<4x2x3xf32>) -> tensor<4x2x3xf32> {
  %r = "migraphx.reduce_mean"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %w = "migraphx.multibroadcast"(%r) {out_lens = array<i64: 4, 2, 3>} : (tensor<2x1xf32>) -> tensor<4x2x3xf32>
  %o = "migraphx.add"(%y, %w) : (tensor<4x2x3xf32>, tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  return %o : tensor<4x2x3xf32>
}

// -----

// It reads what is reduced, not the reduction.
// CHECK-LABEL: @beside
// CHECK: %[[K:.*]]:2 = "migraphx.fused_reduce"(%arg0)
// CHECK: "migraphx.pointwise"(%[[K]]#0)
func.func @beside(%x: tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x3xf32>) {
  %a = "migraphx.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %o = "migraphx.relu"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r, %o : tensor<2x1xf32>, tensor<2x3xf32>
}
