// RUN: mgx-opt %s --mgx-rewrite-rnn --split-input-file | filecheck %s

// Of a network: what its loops carry.
// CHECK-LABEL: @of_loops
// CHECK: %[[A:.*]]:2 = "migraphx.loop"
// CHECK: %[[B:.*]]:2 = "migraphx.loop"
// CHECK: %[[S:.*]] = "migraphx.unsqueeze"(%[[A]]#0) {axes = array<i64: 0>
// CHECK-NEXT: %[[T:.*]] = "migraphx.unsqueeze"(%[[B]]#0) {axes = array<i64: 0>
// CHECK-NEXT: "migraphx.concat"(%[[S]], %[[T]]) {axis = 0 : i64}
func.func @of_loops(%x: tensor<5x2x3xf32>, %w: tensor<2x4x3xf32>, %r: tensor<2x4x4xf32>) -> tensor<2x2x4xf32> {
  %0 = "migraphx.rnn"(%x, %w, %r) {hidden_size = 4 : i64, actv_func = ["tanh"], direction = "bidirectional"} : (tensor<5x2x3xf32>, tensor<2x4x3xf32>, tensor<2x4x4xf32>) -> tensor<5x2x2x4xf32>
  %1 = "migraphx.rnn_last_hs_output"(%0) {direction = "bidirectional"} : (tensor<5x2x2x4xf32>) -> tensor<2x2x4xf32>
  return %1 : tensor<2x2x4xf32>
}

// -----

// Of any states: the last step, or the first.
// CHECK-LABEL: @of_states
// CHECK: "migraphx.slice"(%arg0) {axes = array<i64: 0, 1>, ends = array<i64: 5, 1>, starts = array<i64: 4, 0>}
// CHECK: "migraphx.slice"(%arg0) {axes = array<i64: 0, 1>, ends = array<i64: 1, 2>, starts = array<i64: 0, 1>}
// CHECK: migraphx.concat
func.func @of_states(%x: tensor<5x2x2x3xf32>) -> tensor<2x2x3xf32> {
  %0 = "migraphx.rnn_last_cell_output"(%x) {direction = "bidirectional"} : (tensor<5x2x2x3xf32>) -> tensor<2x2x3xf32>
  return %0 : tensor<2x2x3xf32>
}

// -----

// A run-time number of steps.
// CHECK-LABEL: @dynamic
// CHECK: "migraphx.scan_slice"({{.*}}) {axis = 0 : i64, direction = 1 : i64}
func.func @dynamic(%x: tensor<?x1x2x3xf32>) -> tensor<1x2x3xf32> {
  %0 = "migraphx.rnn_last_hs_output"(%x) {direction = "forward"} : (tensor<?x1x2x3xf32>) -> tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// -----

// Near miss: a result that states fewer dims.
// CHECK-LABEL: @stated
// CHECK-NEXT: migraphx.rnn_last_hs_output
func.func @stated(%x: tensor<5x1x2x3xf32>) -> tensor<1x?x3xf32> {
  %0 = "migraphx.rnn_last_hs_output"(%x) {direction = "forward"} : (tensor<5x1x2x3xf32>) -> tensor<1x?x3xf32>
  return %0 : tensor<1x?x3xf32>
}
