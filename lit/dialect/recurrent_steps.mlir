// Steps of recurrent networks: round trip.
// RUN: mgx-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: @rnn_steps
func.func @rnn_steps(%arg0: tensor<5x2x4xf32>, %arg1: tensor<1x4x4xf32>, %arg2: tensor<?x?x8xf16>, %arg3: tensor<2x4x4xf16>, %arg4: tensor<2x8xf16>, %arg5: tensor<?xi32>, %arg6: tensor<2x?x4xf16>) -> (tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>) {
  // CHECK: "migraphx.rnn_steps"(%arg0, %arg1) {hidden_size = 4 : i64} : (tensor<5x2x4xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  %0 = "migraphx.rnn_steps"(%arg0, %arg1) {hidden_size = 4 : i64} : (tensor<5x2x4xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  // CHECK: "migraphx.rnn_steps"(%arg2, %arg3, %arg4, %arg5, %arg6) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x8xf16>, tensor<2x4x4xf16>, tensor<2x8xf16>, tensor<?xi32>, tensor<2x?x4xf16>) -> tensor<?x2x?x4xf16>
  %1 = "migraphx.rnn_steps"(%arg2, %arg3, %arg4, %arg5, %arg6) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x8xf16>, tensor<2x4x4xf16>, tensor<2x8xf16>, tensor<?xi32>, tensor<2x?x4xf16>) -> tensor<?x2x?x4xf16>
  return %0, %1 : tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>
}

// CHECK-LABEL: @gru_steps
func.func @gru_steps(%arg0: tensor<5x2x12xf32>, %arg1: tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32> {
  // CHECK: "migraphx.gru_steps"(%arg0, %arg1) {hidden_size = 4 : i64, linear_before_reset = 1 : i64} : (tensor<5x2x12xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
  %0 = "migraphx.gru_steps"(%arg0, %arg1) {hidden_size = 4 : i64, linear_before_reset = 1 : i64} : (tensor<5x2x12xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
  return %0 : tensor<5x1x2x4xf32>
}

// CHECK-LABEL: @lstm_steps
func.func @lstm_steps(%arg0: tensor<5x2x16xf32>, %arg1: tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>) {
  // CHECK: "migraphx.lstm_steps"(%arg0, %arg1) {direction = "reverse", hidden_size = 4 : i64} : (tensor<5x2x16xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  %0:2 = "migraphx.lstm_steps"(%arg0, %arg1) {direction = "reverse", hidden_size = 4 : i64} : (tensor<5x2x16xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return %0#0, %0#1 : tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>
}
