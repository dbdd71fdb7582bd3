// RUN: mgx-opt %s --mgx-rewrite-rnn=vector=true --split-input-file | filecheck %s

// One dot for both directions and all steps, its bias added; then the steps.
// CHECK-LABEL: @both_ways
// CHECK-NOT: migraphx.loop
// CHECK: "migraphx.dot"({{.*}}) : (tensor<10x3xf32>, tensor<3x32xf32>) -> tensor<10x32xf32>
// CHECK: "migraphx.concat"({{.*}}) {axis = 0 : i64} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
// CHECK: migraphx.add
// CHECK: %[[P:.*]] = "migraphx.reshape"({{.*}}) {dims = array<i64: 5, 2, 32>}
// CHECK: %[[S:.*]]:2 = "migraphx.lstm_steps"(%[[P]], %arg2) {{{.*}}direction = "bidirectional"{{.*}}} : (tensor<5x2x32xf32>, tensor<2x16x4xf32>)
// CHECK: return %[[S]]#0
func.func @both_ways(%x: tensor<5x2x3xf32>, %w: tensor<2x16x3xf32>, %r: tensor<2x16x4xf32>, %b: tensor<2x32xf32>) -> tensor<5x2x2x4xf32> {
  %h, %c = "migraphx.lstm"(%x, %w, %r, %b) {hidden_size = 4 : i64, direction = "bidirectional"} : (tensor<5x2x3xf32>, tensor<2x16x3xf32>, tensor<2x16x4xf32>, tensor<2x32xf32>) -> (tensor<5x2x2x4xf32>, tensor<5x2x2x4xf32>)
  return %h : tensor<5x2x2x4xf32>
}

// -----

// The bias of a candidate that is reset behind its product stays with the steps.
// CHECK-LABEL: @late_reset
// CHECK: "migraphx.dot"
// CHECK-NOT: migraphx.add
// CHECK: "migraphx.gru_steps"(%{{.*}}, %arg2, %arg3)
func.func @late_reset(%x: tensor<5x?x3xf32>, %w: tensor<1x12x3xf32>, %r: tensor<1x12x4xf32>, %b: tensor<1x24xf32>) -> tensor<5x1x?x4xf32> {
  %0 = "migraphx.gru"(%x, %w, %r, %b) {hidden_size = 4 : i64, linear_before_reset = 1 : i64} : (tensor<5x?x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>, tensor<1x24xf32>) -> tensor<5x1x?x4xf32>
  return %0 : tensor<5x1x?x4xf32>
}

// -----

// Near miss: in f64 it is a loop.
// CHECK-LABEL: @doubles
// CHECK-NOT: _steps
// CHECK: migraphx.loop
func.func @doubles(%x: tensor<5x2x3xf64>, %w: tensor<1x4x3xf64>, %r: tensor<1x4x4xf64>) -> tensor<5x1x2x4xf64> {
  %0 = "migraphx.rnn"(%x, %w, %r) {hidden_size = 4 : i64} : (tensor<5x2x3xf64>, tensor<1x4x3xf64>, tensor<1x4x4xf64>) -> tensor<5x1x2x4xf64>
  return %0 : tensor<5x1x2x4xf64>
}
