// RUN: mgx-opt %s --mgx-rewrite-rnn --split-input-file | filecheck %s

// The reset state takes a dot of its own.
// CHECK-LABEL: @early_reset
// CHECK-NOT: migraphx.gru
// CHECK: "migraphx.dot"({{.*}}) : (tensor<10x3xf32>, tensor<3x12xf32>) -> tensor<10x12xf32>
// CHECK: migraphx.loop
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
// CHECK: migraphx.sigmoid
// CHECK: %[[R:.*]] = "migraphx.mul"
// CHECK-NEXT: "migraphx.dot"(%[[R]], {{.*}}) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK: migraphx.tanh
func.func @early_reset(%x: tensor<5x2x3xf32>, %w: tensor<1x12x3xf32>, %r: tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32> {
  %0 = "migraphx.gru"(%x, %w, %r) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
  return %0 : tensor<5x1x2x4xf32>
}

// -----

// Reset behind the product: one dot; R's bias of the candidate is added inside of the loop. Two
// directions are two loops.
// CHECK-LABEL: @late_reset
// CHECK-NOT: migraphx.gru
// CHECK: migraphx.loop
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x4xf32>, tensor<4x12xf32>) -> tensor<2x12xf32>
// CHECK-NOT: migraphx.dot
// CHECK: "migraphx.multibroadcast"({{.*}}) {{.*}} : (tensor<4xf32>) -> tensor<2x4xf32>
// CHECK: scan_output_directions = array<i64: 0>
// CHECK: migraphx.loop
// CHECK: scan_output_directions = array<i64: 1>
// CHECK: "migraphx.concat"({{.*}}) {axis = 1 : i64}
func.func @late_reset(%x: tensor<5x2x3xf32>, %w: tensor<2x12x3xf32>, %r: tensor<2x12x4xf32>, %b: tensor<2x24xf32>) -> tensor<5x2x2x4xf32> {
  %0 = "migraphx.gru"(%x, %w, %r, %b) {hidden_size = 4 : i64, linear_before_reset = 1 : i64, direction = "bidirectional"} : (tensor<5x2x3xf32>, tensor<2x12x3xf32>, tensor<2x12x4xf32>, tensor<2x24xf32>) -> tensor<5x2x2x4xf32>
  return %0 : tensor<5x2x2x4xf32>
}

// -----

// Near miss: weights of an unknown number of inputs.
// CHECK-LABEL: @weights
// CHECK-NEXT: migraphx.gru
func.func @weights(%x: tensor<5x2x?xf32>, %w: tensor<1x12x?xf32>, %r: tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32> {
  %0 = "migraphx.gru"(%x, %w, %r) {hidden_size = 4 : i64} : (tensor<5x2x?xf32>, tensor<1x12x?xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
  return %0 : tensor<5x1x2x4xf32>
}
