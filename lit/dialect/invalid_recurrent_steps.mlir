// Verifier errors of the steps of recurrent networks.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @rnn_steps_of_other_products(%x: tensor<5x2x3xf32>, %r: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn_steps' op input expected dims {5, 2, 4}, got {5, 2, 3}}}
  %0 = "migraphx.rnn_steps"(%x, %r) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @gru_steps_of_one_direction(%x: tensor<5x2x12xf32>, %r: tensor<2x12x4xf32>) {
  // expected-error @+1 {{'migraphx.gru_steps' op input expected dims {5, 2, 24}, got {5, 2, 12}}}
  %0 = "migraphx.gru_steps"(%x, %r) {hidden_size = 4 : i64, direction = "bidirectional"} : (tensor<5x2x12xf32>, tensor<2x12x4xf32>) -> tensor<5x2x2x4xf32>
  return
}

// -----

func.func @lstm_steps_of_a_small_matrix(%x: tensor<5x2x16xf32>, %r: tensor<1x12x4xf32>) {
  // expected-error @+1 {{'migraphx.lstm_steps' op recurrence expected dims {1, 16, 4}, got {1, 12, 4}}}
  %0:2 = "migraphx.lstm_steps"(%x, %r) {hidden_size = 4 : i64} : (tensor<5x2x16xf32>, tensor<1x12x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return
}

// -----

func.func @lstm_steps_of_few_scales(%x: tensor<5x2x16xf32>, %r: tensor<1x16x4xf32>, %s: tensor<1x4xf32>) {
  // expected-error @+1 {{'migraphx.lstm_steps' op recurrence_scale expected dims {1, 16}, got {1, 4}}}
  %0:2 = "migraphx.lstm_steps"(%x, %r, %s) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 1>, hidden_size = 4 : i64} : (tensor<5x2x16xf32>, tensor<1x16x4xf32>, tensor<1x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return
}

// -----

func.func @lstm_steps_in_8_bits_of_lengths(%x: tensor<5x2x16xf32>, %r: tensor<1x16x4xf32>, %n: tensor<2xi32>, %s: tensor<1x16xf32>) {
  // expected-error @+1 {{'migraphx.lstm_steps' op recurrence_scale expected no sequence_lens}}
  %0:2 = "migraphx.lstm_steps"(%x, %r, %n, %s) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 0, 0, 1>, hidden_size = 4 : i64} : (tensor<5x2x16xf32>, tensor<1x16x4xf32>, tensor<2xi32>, tensor<1x16xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return
}
