// Recurrent operators and the ops on their states.
// RUN: mgx-opt %s | filecheck %s

// CHECK-LABEL: @rnn
func.func @rnn(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>, %arg3: tensor<?x?x3xf16>, %arg4: tensor<2x4x3xf16>, %arg5: tensor<2x4x4xf16>, %arg6: tensor<2x8xf16>, %arg7: tensor<?xi32>, %arg8: tensor<2x?x4xf16>) -> (tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>) {
  // CHECK: "migraphx.rnn"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  %r0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  // CHECK: "migraphx.rnn"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x4x3xf16>, tensor<2x4x4xf16>, tensor<2x8xf16>, tensor<?xi32>, tensor<2x?x4xf16>) -> tensor<?x2x?x4xf16>
  %r1 = "migraphx.rnn"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x4x3xf16>, tensor<2x4x4xf16>, tensor<2x8xf16>, tensor<?xi32>, tensor<2x?x4xf16>) -> tensor<?x2x?x4xf16>
  return %r0, %r1 : tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>
}

// CHECK-LABEL: @gru
func.func @gru(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x12x3xf32>, %arg2: tensor<1x12x4xf32>, %arg3: tensor<?x?x3xf16>, %arg4: tensor<2x12x3xf16>, %arg5: tensor<2x12x4xf16>, %arg6: tensor<2x24xf16>, %arg7: tensor<?xi32>, %arg8: tensor<2x?x4xf16>) -> (tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>) {
  // CHECK: "migraphx.gru"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
  %r0 = "migraphx.gru"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
  // CHECK: "migraphx.gru"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x12x3xf16>, tensor<2x12x4xf16>, tensor<2x24xf16>, tensor<?xi32>, tensor<2x?x4xf16>) -> tensor<?x2x?x4xf16>
  %r1 = "migraphx.gru"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x12x3xf16>, tensor<2x12x4xf16>, tensor<2x24xf16>, tensor<?xi32>, tensor<2x?x4xf16>) -> tensor<?x2x?x4xf16>
  return %r0, %r1 : tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>
}

// CHECK-LABEL: @lstm
func.func @lstm(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x16x3xf32>, %arg2: tensor<1x16x4xf32>, %arg3: tensor<?x?x3xf16>, %arg4: tensor<2x16x3xf16>, %arg5: tensor<2x16x4xf16>, %arg6: tensor<2x32xf16>, %arg7: tensor<?xi32>, %arg8: tensor<2x?x4xf16>, %arg9: tensor<2x?x4xf16>, %arg10: tensor<2x12xf16>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>) {
  // CHECK: "migraphx.lstm"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  %r0:2 = "migraphx.lstm"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  // CHECK: "migraphx.lstm"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x16x3xf16>, tensor<2x16x4xf16>, tensor<2x32xf16>, tensor<?xi32>, tensor<2x?x4xf16>, tensor<2x?x4xf16>, tensor<2x12xf16>) -> (tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>)
  %r1:2 = "migraphx.lstm"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x16x3xf16>, tensor<2x16x4xf16>, tensor<2x32xf16>, tensor<?xi32>, tensor<2x?x4xf16>, tensor<2x?x4xf16>, tensor<2x12xf16>) -> (tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>)
  return %r0#0, %r0#1, %r1#0, %r1#1 : tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>
}

// CHECK-LABEL: @activations
func.func @activations(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>) -> (tensor<5x1x2x4xf32>) {
  // CHECK: "migraphx.rnn"(%arg0, %arg1, %arg2) {actv_func = ["leaky_relu{alpha=0.1}"], direction = "reverse", hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  %r0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {actv_func = ["leaky_relu{alpha=0.1}"], direction = "reverse", hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return %r0 : tensor<5x1x2x4xf32>
}

// CHECK-LABEL: @rnn_last_hs_output
func.func @rnn_last_hs_output(%arg0: tensor<5x1x2x4xf32>, %arg1: tensor<?x2x?x4xf32>) -> (tensor<1x2x4xf32>, tensor<2x?x4xf32>) {
  // CHECK: "migraphx.rnn_last_hs_output"(%arg0) : (tensor<5x1x2x4xf32>) -> tensor<1x2x4xf32>
  %r0 = "migraphx.rnn_last_hs_output"(%arg0) : (tensor<5x1x2x4xf32>) -> tensor<1x2x4xf32>
  // CHECK: "migraphx.rnn_last_hs_output"(%arg1) {direction = "bidirectional"} : (tensor<?x2x?x4xf32>) -> tensor<2x?x4xf32>
  %r1 = "migraphx.rnn_last_hs_output"(%arg1) {direction = "bidirectional"} : (tensor<?x2x?x4xf32>) -> tensor<2x?x4xf32>
  return %r0, %r1 : tensor<1x2x4xf32>, tensor<2x?x4xf32>
}

// CHECK-LABEL: @rnn_last_cell_output
func.func @rnn_last_cell_output(%arg0: tensor<5x1x2x4xf32>, %arg1: tensor<?x2x?x4xf32>) -> (tensor<1x2x4xf32>, tensor<2x?x4xf32>) {
  // CHECK: "migraphx.rnn_last_cell_output"(%arg0) : (tensor<5x1x2x4xf32>) -> tensor<1x2x4xf32>
  %r0 = "migraphx.rnn_last_cell_output"(%arg0) : (tensor<5x1x2x4xf32>) -> tensor<1x2x4xf32>
  // CHECK: "migraphx.rnn_last_cell_output"(%arg1) {direction = "bidirectional"} : (tensor<?x2x?x4xf32>) -> tensor<2x?x4xf32>
  %r1 = "migraphx.rnn_last_cell_output"(%arg1) {direction = "bidirectional"} : (tensor<?x2x?x4xf32>) -> tensor<2x?x4xf32>
  return %r0, %r1 : tensor<1x2x4xf32>, tensor<2x?x4xf32>
}

// CHECK-LABEL: @rnn_var_sl_last_output
func.func @rnn_var_sl_last_output(%arg0: tensor<5x1x2x4xf32>, %arg1: tensor<2xi32>) -> (tensor<1x2x4xf32>) {
  // CHECK: "migraphx.rnn_var_sl_last_output"(%arg0, %arg1) {direction = "reverse"} : (tensor<5x1x2x4xf32>, tensor<2xi32>) -> tensor<1x2x4xf32>
  %r0 = "migraphx.rnn_var_sl_last_output"(%arg0, %arg1) {direction = "reverse"} : (tensor<5x1x2x4xf32>, tensor<2xi32>) -> tensor<1x2x4xf32>
  return %r0 : tensor<1x2x4xf32>
}

// CHECK-LABEL: @rnn_var_sl_shift_output
func.func @rnn_var_sl_shift_output(%arg0: tensor<?x2x2x4xf32>, %arg1: tensor<?xi64>) -> (tensor<?x2x2x4xf32>) {
  // CHECK: "migraphx.rnn_var_sl_shift_output"(%arg0, %arg1) {direction = "bidirectional", output_name = "cell_states"} : (tensor<?x2x2x4xf32>, tensor<?xi64>) -> tensor<?x2x2x4xf32>
  %r0 = "migraphx.rnn_var_sl_shift_output"(%arg0, %arg1) {direction = "bidirectional", output_name = "cell_states"} : (tensor<?x2x2x4xf32>, tensor<?xi64>) -> tensor<?x2x2x4xf32>
  return %r0 : tensor<?x2x2x4xf32>
}

// CHECK-LABEL: @rnn_var_sl_shift_sequence
func.func @rnn_var_sl_shift_sequence(%arg0: tensor<5x2x3xf32>, %arg1: tensor<2xi32>) -> (tensor<5x2x3xf32>) {
  // CHECK: "migraphx.rnn_var_sl_shift_sequence"(%arg0, %arg1) : (tensor<5x2x3xf32>, tensor<2xi32>) -> tensor<5x2x3xf32>
  %r0 = "migraphx.rnn_var_sl_shift_sequence"(%arg0, %arg1) : (tensor<5x2x3xf32>, tensor<2xi32>) -> tensor<5x2x3xf32>
  return %r0 : tensor<5x2x3xf32>
}
