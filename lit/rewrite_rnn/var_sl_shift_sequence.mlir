// RUN: mgx-opt %s --mgx-rewrite-rnn --split-input-file | filecheck %s

// CHECK-LABEL: @static
// CHECK: migraphx.gathernd
// CHECK: migraphx.where
func.func @static(%x: tensor<5x3x2xf32>, %lens: tensor<3xi32>) -> tensor<5x3x2xf32> {
  %0 = "migraphx.rnn_var_sl_shift_sequence"(%x, %lens) : (tensor<5x3x2xf32>, tensor<3xi32>) -> tensor<5x3x2xf32>
  return %0 : tensor<5x3x2xf32>
}

// -----

// Near miss: a run-time batch.
// CHECK-LABEL: @dynamic
// CHECK-NEXT: migraphx.rnn_var_sl_shift_sequence
func.func @dynamic(%x: tensor<5x?x2xf32>, %lens: tensor<?xi32>) -> tensor<5x?x2xf32> {
  %0 = "migraphx.rnn_var_sl_shift_sequence"(%x, %lens) : (tensor<5x?x2xf32>, tensor<?xi32>) -> tensor<5x?x2xf32>
  return %0 : tensor<5x?x2xf32>
}
