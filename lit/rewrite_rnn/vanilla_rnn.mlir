// RUN: mgx-opt %s --mgx-rewrite-rnn --split-input-file | filecheck %s

// One dot of all steps, then a loop of one dot on the state.
// CHECK-LABEL: @forward
// CHECK-NOT: migraphx.rnn
// CHECK: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 10, 3>}
// CHECK-NEXT: %[[P:.*]] = "migraphx.dot"(%[[X]], {{.*}}) : (tensor<10x3xf32>, tensor<3x4xf32>) -> tensor<10x4xf32>
// CHECK-NEXT: %[[XW:.*]] = "migraphx.reshape"(%[[P]]) {dims = array<i64: 5, 2, 4>}
// CHECK: %[[L:.*]]:2 = "migraphx.loop"
// CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i64>, %[[C:.*]]: tensor<i1>, %[[H:.*]]: tensor<2x4xf32>):
// CHECK-NEXT: "migraphx.scan_slice"(%[[XW]], %[[I]]) {axis = 0 : i64, direction = 0 : i64}
// CHECK-NEXT: migraphx.squeeze
// CHECK-NEXT: "migraphx.dot"(%[[H]], {{.*}}) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: migraphx.add
// CHECK-NEXT: %[[N:.*]] = "migraphx.tanh"
// CHECK-NEXT: "migraphx.yield"(%[[C]], %[[N]], %[[N]])
// CHECK-NEXT: max_iterations = 5 : i64, padded = true, scan_output_directions = array<i64: 0>
// CHECK: "migraphx.unsqueeze"(%[[L]]#1) {axes = array<i64: 1>
func.func @forward(%x: tensor<5x2x3xf32>, %w: tensor<1x4x3xf32>, %r: tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32> {
  %0 = "migraphx.rnn"(%x, %w, %r) {hidden_size = 4 : i64, actv_func = ["tanh"]} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return %0 : tensor<5x1x2x4xf32>
}

// -----

// Backwards, with a bias, lengths, a first state, clip, and a function of parameters.
// CHECK-LABEL: @reverse
// CHECK-NOT: migraphx.rnn
// CHECK: migraphx.less
// CHECK: migraphx.loop
// CHECK: "migraphx.scan_slice"({{.*}}) {axis = 0 : i64, direction = 1 : i64}
// CHECK: migraphx.clip
// CHECK: "migraphx.leaky_relu"({{.*}}) {alpha = 1.000000e-01 : f64}
// CHECK: "migraphx.scan_slice"({{.*}}) {axis = 0 : i64, direction = 1 : i64} : (tensor<5x2x1xf32>
// CHECK: migraphx.where
// CHECK: scan_output_directions = array<i64: 1>
func.func @reverse(%x: tensor<5x2x3xf32>, %w: tensor<1x4x3xf32>, %r: tensor<1x4x4xf32>, %b: tensor<1x8xf32>, %lens: tensor<2xi32>, %h: tensor<1x2x4xf32>) -> tensor<5x1x2x4xf32> {
  %0 = "migraphx.rnn"(%x, %w, %r, %b, %lens, %h) {hidden_size = 4 : i64, actv_func = ["leaky_relu{alpha=0.1}"], direction = "reverse", clip = 0.5} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>, tensor<1x8xf32>, tensor<2xi32>, tensor<1x2x4xf32>) -> tensor<5x1x2x4xf32>
  return %0 : tensor<5x1x2x4xf32>
}

// -----

// Steps and batch known at run time only.
// CHECK-LABEL: @dynamic
// CHECK-NOT: migraphx.rnn
// CHECK: %[[D:.*]] = "migraphx.dimensions_of"(%arg0) {end = 1 : i64, start = 0 : i64}
// CHECK: %[[N:.*]] = "migraphx.squeeze"(%[[D]])
// CHECK: "migraphx.loop"(%[[N]],
// CHECK: padded = false
func.func @dynamic(%x: tensor<?x?x3xf32>, %w: tensor<1x4x3xf32>, %r: tensor<1x4x4xf32>) -> tensor<?x1x?x4xf32> {
  %0 = "migraphx.rnn"(%x, %w, %r) {hidden_size = 4 : i64, actv_func = ["tanh"]} : (tensor<?x?x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<?x1x?x4xf32>
  return %0 : tensor<?x1x?x4xf32>
}

// -----

// Near miss: weights whose number of inputs is not known.
// CHECK-LABEL: @weights
// CHECK-NEXT: migraphx.rnn
func.func @weights(%x: tensor<5x2x?xf32>, %w: tensor<1x4x?xf32>, %r: tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32> {
  %0 = "migraphx.rnn"(%x, %w, %r) {hidden_size = 4 : i64, actv_func = ["tanh"]} : (tensor<5x2x?xf32>, tensor<1x4x?xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return %0 : tensor<5x1x2x4xf32>
}

// -----

// Of products that are computed already: each direction reads its columns.
// CHECK-LABEL: @steps
// CHECK-NOT: rnn_steps
// CHECK: "migraphx.slice"(%arg0) {axes = array<i64: 2>, ends = array<i64: 8>, starts = array<i64: 4>}
// CHECK: migraphx.loop
func.func @steps(%x: tensor<5x2x8xf32>, %r: tensor<2x4x4xf32>) -> tensor<5x2x2x4xf32> {
  %0 = "migraphx.rnn_steps"(%x, %r) {hidden_size = 4 : i64, direction = "bidirectional", actv_func = ["tanh"]} : (tensor<5x2x8xf32>, tensor<2x4x4xf32>) -> tensor<5x2x2x4xf32>
  return %0 : tensor<5x2x2x4xf32>
}
