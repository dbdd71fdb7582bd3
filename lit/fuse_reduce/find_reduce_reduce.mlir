// RUN: mgx-opt %s --mgx-fuse-reduce --split-input-file | filecheck %s

// A softmax as it is spelled: the second reduction is of what the first one gave.
// CHECK-LABEL: @softmax
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_reduce"(%arg0) ({
// CHECK: migraphx.reduce_max
// CHECK: migraphx.exp
// CHECK-NEXT: migraphx.reduce_sum
// CHECK: migraphx.div
// CHECK: return %[[K]]
func.func @softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %h = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %hw = "migraphx.multibroadcast"(%h) {out_lens = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %d = "migraphx.sub"(%x, %hw) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = "migraphx.exp"(%d) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %t = "migraphx.reduce_sum"(%e) {axes = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %tw = "migraphx.multibroadcast"(%t) {out_lens = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %o = "migraphx.div"(%e, %tw) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %o : tensor<2x3xf32>
}

// -----

// Near misses. Over another axis.
// CHECK-LABEL: @other_axis
// CHECK-COUNT-2: migraphx.fused_reduce
func.func @other_axis(%x: tensor<2x3xf32>) -> tensor<1x3xf32> {
  %h = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %hw = "migraphx.multibroadcast"(%h) {out_lens = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %d = "migraphx.sub"(%x, %hw) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = "migraphx.exp"(%d) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %o = "migraphx.reduce_sum"(%e) {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return %o : tensor<1x3xf32>
}

// -----

// Of the rows: other dims.
// CHECK-LABEL: @rows
// CHECK-COUNT-2: migraphx.fused_reduce
func.func @rows(%x: tensor<2x3xf32>) -> tensor<1x1xf32> {
  %h = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %o = "migraphx.reduce_sum"(%h) {axes = array<i64: 0>} : (tensor<2x1xf32>) -> tensor<1x1xf32>
  return %o : tensor<1x1xf32>
}

// -----

// Of the same operand, side by side.
// CHECK-LABEL: @beside
// CHECK-COUNT-2: migraphx.fused_reduce
func.func @beside(%x: tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %h = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %o = "migraphx.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %h, %o : tensor<2x1xf32>, tensor<2x1xf32>
}
