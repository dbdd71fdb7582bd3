// RUN: mgx-opt %s --mgx-rewrite-rnn --split-input-file | filecheck %s

// Forward states stay where they are.
// CHECK-LABEL: @forward
// CHECK-NOT: gathernd
// CHECK: migraphx.where
func.func @forward(%x: tensor<5x1x3x2xf32>, %lens: tensor<3xi64>) -> tensor<5x1x3x2xf32> {
  %0 = "migraphx.rnn_var_sl_shift_output"(%x, %lens) {direction = "forward"} : (tensor<5x1x3x2xf32>, tensor<3xi64>) -> tensor<5x1x3x2xf32>
  return %0 : tensor<5x1x3x2xf32>
}

// -----

// CHECK-LABEL: @reverse
// CHECK: migraphx.gathernd
// CHECK: migraphx.where
func.func @reverse(%x: tensor<5x1x3x2xf32>, %lens: tensor<3xi64>) -> tensor<5x1x3x2xf32> {
  %0 = "migraphx.rnn_var_sl_shift_output"(%x, %lens) {direction = "reverse"} : (tensor<5x1x3x2xf32>, tensor<3xi64>) -> tensor<5x1x3x2xf32>
  return %0 : tensor<5x1x3x2xf32>
}

// -----

// Near miss: a run-time number of steps.
// CHECK-LABEL: @dynamic
// CHECK-NEXT: migraphx.rnn_var_sl_shift_output
func.func @dynamic(%x: tensor<?x1x3x2xf32>, %lens: tensor<3xi64>) -> tensor<?x1x3x2xf32> {
  %0 = "migraphx.rnn_var_sl_shift_output"(%x, %lens) {direction = "reverse"} : (tensor<?x1x3x2xf32>, tensor<3xi64>) -> tensor<?x1x3x2xf32>
  return %0 : tensor<?x1x3x2xf32>
}
