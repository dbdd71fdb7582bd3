// RUN: mgx-opt %s --mgx-rewrite-rnn --split-input-file | filecheck %s

// CHECK-LABEL: @both
// CHECK: migraphx.gathernd
// CHECK: migraphx.where
// CHECK: "migraphx.slice"({{.*}}) {axes = array<i64: 0>, ends = array<i64: 1>, starts = array<i64: 0>}
// CHECK: migraphx.where
// CHECK: migraphx.concat
func.func @both(%x: tensor<5x2x3x2xf32>, %lens: tensor<3xi32>) -> tensor<2x3x2xf32> {
  %0 = "migraphx.rnn_var_sl_last_output"(%x, %lens) {direction = "bidirectional"} : (tensor<5x2x3x2xf32>, tensor<3xi32>) -> tensor<2x3x2xf32>
  return %0 : tensor<2x3x2xf32>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK: migraphx.dynamic_range
// CHECK: migraphx.gathernd
func.func @dynamic(%x: tensor<?x1x?x2xf32>, %lens: tensor<?xi32>) -> tensor<1x?x2xf32> {
  %0 = "migraphx.rnn_var_sl_last_output"(%x, %lens) {direction = "forward"} : (tensor<?x1x?x2xf32>, tensor<?xi32>) -> tensor<1x?x2xf32>
  return %0 : tensor<1x?x2xf32>
}

// -----

// Near miss: a result that states fewer dims.
// CHECK-LABEL: @stated
// CHECK-NEXT: migraphx.rnn_var_sl_last_output
func.func @stated(%x: tensor<5x1x3x2xf32>, %lens: tensor<3xi32>) -> tensor<1x?x2xf32> {
  %0 = "migraphx.rnn_var_sl_last_output"(%x, %lens) {direction = "forward"} : (tensor<5x1x3x2xf32>, tensor<3xi32>) -> tensor<1x?x2xf32>
  return %0 : tensor<1x?x2xf32>
}
