// What quantised, packed, random and recurrent operators refuse.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @odd_extent(%arg0: tensor<2x3xi8>) {
  // expected-error @+1 {{'migraphx.pack_int4' op expected an even extent along axis 1, got 3}}
  %0 = "migraphx.pack_int4"(%arg0) : (tensor<2x3xi8>) -> tensor<2x1xi8>
  return
}

// -----

func.func @pack_type(%arg0: tensor<4xi32>) {
  // expected-error @+1 {{'migraphx.pack_int4' op expected i8 or ui8, got i32}}
  %0 = "migraphx.pack_int4"(%arg0) : (tensor<4xi32>) -> tensor<2xi32>
  return
}

// -----

func.func @unpack_type(%arg0: tensor<4xi8>) {
  // expected-error @+1 {{'migraphx.unpack_fp4' op expected ui8, got i8}}
  %0 = "migraphx.unpack_fp4"(%arg0) : (tensor<4xi8>) -> tensor<8xf8E4M3FN>
  return
}

// -----

func.func @unpack_result(%arg0: tensor<4xui8>) {
  // expected-error @+1 {{'migraphx.unpack_fp4' op result 0 expected tensor<8xf8E4M3FN>, got tensor<8xf32>}}
  %0 = "migraphx.unpack_fp4"(%arg0) : (tensor<4xui8>) -> tensor<8xf32>
  return
}

// -----

func.func @product_type(%arg0: tensor<2x3xf32>, %arg1: tensor<3x2xf32>) {
  // expected-error @+1 {{'migraphx.quant_dot' op expected f8E4M3FN or f8E4M3FNUZ or f8E5M2 or f8E5M2FNUZ or i8 or ui8, got f32}}
  %0 = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @product_types(%arg0: tensor<2x3xi8>, %arg1: tensor<3x2xf8E5M2>) {
  // expected-error @+1 {{'migraphx.quant_dot' op expected operands of one type, got i8 and f8E5M2}}
  %0 = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xi8>, tensor<3x2xf8E5M2>) -> tensor<2x2xi32>
  return
}

// -----

func.func @product_result(%arg0: tensor<2x3xi8>, %arg1: tensor<3x2xi8>) {
  // expected-error @+1 {{'migraphx.quant_dot' op result 0 expected tensor<2x2xi32>, got tensor<2x2xi8>}}
  %0 = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xi8>, tensor<3x2xi8>) -> tensor<2x2xi8>
  return
}

// -----

func.func @product_inner(%arg0: tensor<2x3xi8>, %arg1: tensor<4x2xi8>) {
  // expected-error @+1 {{'migraphx.quant_dot' op inner dims do not match: {2, 3} x {4, 2}}}
  %0 = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xi8>, tensor<4x2xi8>) -> tensor<2x2xi32>
  return
}

// -----

func.func @one_scale(%arg0: tensor<2x3xf8E5M2>, %arg1: tensor<3x2xf8E5M2>, %arg2: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.quant_dot' op expected no scales or two, got 1}}
  %0 = "migraphx.quant_dot"(%arg0, %arg1, %arg2) : (tensor<2x3xf8E5M2>, tensor<3x2xf8E5M2>, tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @scales_of_integers(%arg0: tensor<2x3xi8>, %arg1: tensor<3x2xi8>, %arg2: tensor<2x3xf32>, %arg3: tensor<3x2xf32>) {
  // expected-error @+1 {{'migraphx.quant_dot' op expected f8 operands beside scales, got tensor<2x3xi8>}}
  %0 = "migraphx.quant_dot"(%arg0, %arg1, %arg2, %arg3) : (tensor<2x3xi8>, tensor<3x2xi8>, tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xi32>
  return
}

// -----

func.func @scale_dims(%arg0: tensor<2x3xf8E5M2>, %arg1: tensor<3x2xf8E5M2>, %arg2: tensor<2x3xf32>, %arg3: tensor<3x1xf32>) {
  // expected-error @+1 {{'migraphx.quant_dot' op expected operands of equal dims, got {3, 2} and {3, 1}}}
  %0 = "migraphx.quant_dot"(%arg0, %arg1, %arg2, %arg3) : (tensor<2x3xf8E5M2>, tensor<3x2xf8E5M2>, tensor<2x3xf32>, tensor<3x1xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @conv_channels(%arg0: tensor<1x3x8x8xi8>, %arg1: tensor<4x2x3x3xi8>) {
  // expected-error @+1 {{'migraphx.quant_convolution' op input expected 2 channels (2 of the weights times group 1), got 3}}
  %0 = "migraphx.quant_convolution"(%arg0, %arg1) : (tensor<1x3x8x8xi8>, tensor<4x2x3x3xi8>) -> tensor<1x4x6x6xi32>
  return
}

// -----

func.func @seed_type() {
  // expected-error @+1 {{'migraphx.random_seed' op dtype expected an integer type, got f32}}
  %0 = "migraphx.random_seed"() {dtype = f32} : () -> tensor<f32>
  return
}

// -----

func.func @seed_count(%arg0: tensor<2xui64>, %arg1: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.random_uniform' op operand 'seed' expected one element, got dims {2}}}
  %0 = "migraphx.random_uniform"(%arg0, %arg1) : (tensor<2xui64>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @seed_float(%arg0: tensor<f32>, %arg1: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.random_uniform' op operand 'seed' expected an integer type, got f32}}
  %0 = "migraphx.random_uniform"(%arg0, %arg1) : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @batches(%arg0: tensor<2x5xf32>, %arg1: tensor<3x4xf32>) {
  // expected-error @+1 {{'migraphx.multinomial' op expected equal batches, got 2 and 3}}
  %0 = "migraphx.multinomial"(%arg0, %arg1) : (tensor<2x5xf32>, tensor<3x4xf32>) -> tensor<2x4xi32>
  return
}

// -----

func.func @categories(%arg0: tensor<2x0xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @+1 {{'migraphx.multinomial' op cdf expected at least one category, got none}}
  %0 = "migraphx.multinomial"(%arg0, %arg1) : (tensor<2x0xf32>, tensor<2x4xf32>) -> tensor<2x4xi32>
  return
}

// -----

func.func @range_types(%arg0: tensor<i64>, %arg1: tensor<i32>, %arg2: tensor<i64>) {
  // expected-error @+1 {{'migraphx.dynamic_range' op expected operands of one type, got i64 and i32}}
  %0 = "migraphx.dynamic_range"(%arg0, %arg1, %arg2) : (tensor<i64>, tensor<i32>, tensor<i64>) -> tensor<?xi64>
  return
}

// -----

func.func @allocate_nothing() {
  // expected-error @+1 {{'migraphx.allocate' op expected one of the attribute 'shape' and the operand 'dims'}}
  %0 = "migraphx.allocate"() : () -> tensor<2xf32>
  return
}

// -----

func.func @allocate_both(%arg0: tensor<1xi64>) {
  // expected-error @+1 {{'migraphx.allocate' op expected one of the attribute 'shape' and the operand 'dims'}}
  %0 = "migraphx.allocate"(%arg0) {shape = tensor<2xf32>} : (tensor<1xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @allocate_rank(%arg0: tensor<?xi64>) {
  // expected-error @+1 {{'migraphx.allocate' op operand 'dims' expected a static extent: it is the result's rank}}
  %0 = "migraphx.allocate"(%arg0) : (tensor<?xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @fill_value(%arg0: tensor<2xf32>, %arg1: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.fill' op operand 'value' expected one element, got dims {2}}}
  %0 = "migraphx.fill"(%arg0, %arg1) : (tensor<2xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @fill_type(%arg0: tensor<f16>, %arg1: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.fill' op expected operands of one type, got f16 and f32}}
  %0 = "migraphx.fill"(%arg0, %arg1) : (tensor<f16>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @weights(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x5x3xf32>, %arg2: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op weights expected dims {1, 4, 3}, got {1, 5, 3}}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x5x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @recurrence(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x3xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op recurrence expected dims {1, 4, 4}, got {1, 4, 3}}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @gates(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.gru' op weights expected dims {1, 12, 3}, got {1, 4, 3}}}
  %0 = "migraphx.gru"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @directions(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op weights expected dims {2, 4, 3}, got {1, 4, 3}}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, hidden_size = 4 : i64, direction = "bidirectional"} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @direction_name(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op attribute 'direction' expected one of forward, reverse, bidirectional, got sideways}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, hidden_size = 4 : i64, direction = "sideways"} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @activation_name(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op activation expected a pointwise operator of one float, got 'frob'}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, hidden_size = 4 : i64, actv_func = ["frob"]} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @activation_count(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op actv_func expected 1 or 2 operators, got 3}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, hidden_size = 4 : i64, actv_func = ["tanh", "tanh", "tanh"]} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @lengths(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>, %arg3: tensor<3xi32>) {
  // expected-error @+1 {{'migraphx.rnn' op sequence_lens expected dims {2}, got {3}}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2, %arg3) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>, hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>, tensor<3xi32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @segments(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x4x3xf32>, %arg2: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op expected 6 or fewer operands, got 3}}
  %0 = "migraphx.rnn"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>, hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @states_rank(%arg0: tensor<5x2x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn_last_hs_output' op states expected rank 4, got rank 3}}
  %0 = "migraphx.rnn_last_hs_output"(%arg0) : (tensor<5x2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @no_steps(%arg0: tensor<0x1x2x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn_last_cell_output' op states expected at least one step, got none}}
  %0 = "migraphx.rnn_last_cell_output"(%arg0) : (tensor<0x1x2x4xf32>) -> tensor<1x2x4xf32>
  return
}

// -----

func.func @shift_lengths(%arg0: tensor<5x1x2x4xf32>, %arg1: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.rnn_var_sl_shift_output' op sequence_lens expected an integer type, got f32}}
  %0 = "migraphx.rnn_var_sl_shift_output"(%arg0, %arg1) : (tensor<5x1x2x4xf32>, tensor<2xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @shift_rank(%arg0: tensor<5x2xf32>, %arg1: tensor<2xi32>) {
  // expected-error @+1 {{'migraphx.rnn_var_sl_shift_sequence' op input expected rank 3, got rank 2}}
  %0 = "migraphx.rnn_var_sl_shift_sequence"(%arg0, %arg1) : (tensor<5x2xf32>, tensor<2xi32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @quantizelinear_float8_point(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{'migraphx.quantizelinear' op requires attribute 'out_type' for a f8E4M3FN zero_point}}
  %0 = "migraphx.quantizelinear"(%a, %b, %c) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
  return
}

// -----

func.func @quantizelinear_to_f16(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.quantizelinear' op out_type expected an integer or f8 type, got f16}}
  %0 = "migraphx.quantizelinear"(%a, %b) {out_type = f16} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @allocate_dynamic() {
  // expected-error @+1 {{'migraphx.allocate' op shape expected static dims, got tensor<?xf32>}}
  %0 = "migraphx.allocate"() {shape = tensor<?xf32>} : () -> tensor<?xf32>
  return
}

// -----

func.func @allocate_two_types() {
  // expected-error @+1 {{'migraphx.allocate' op buf_type expected f32, got f16}}
  %0 = "migraphx.allocate"() {shape = tensor<2xf32>, buf_type = f16} : () -> tensor<2xf32>
  return
}

// -----

func.func @rnn_hidden(%a: tensor<5x2x3xf32>, %b: tensor<1x4x3xf32>, %c: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op hidden_size expected at least 1, got 0}}
  %0 = "migraphx.rnn"(%a, %b, %c) {hidden_size = 0 : i64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @rnn_clip(%a: tensor<5x2x3xf32>, %b: tensor<1x4x3xf32>, %c: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op clip expected 0 (none) or more, got -1.0}}
  %0 = "migraphx.rnn"(%a, %b, %c) {hidden_size = 4 : i64, clip = -1.0 : f64} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @rnn_activation_attribute(%a: tensor<5x2x3xf32>, %b: tensor<1x4x3xf32>, %c: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op activation 'leaky_relu{beta=1}' has no attribute 'beta'}}
  %0 = "migraphx.rnn"(%a, %b, %c) {hidden_size = 4 : i64, actv_func = ["leaky_relu{beta=1}"]} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @rnn_activation_number(%a: tensor<5x2x3xf32>, %b: tensor<1x4x3xf32>, %c: tensor<1x4x4xf32>) {
  // expected-error @+1 {{'migraphx.rnn' op activation 'leaky_relu{alpha=x}' expected a number, got 'x'}}
  %0 = "migraphx.rnn"(%a, %b, %c) {hidden_size = 4 : i64, actv_func = ["leaky_relu{alpha=x}"]} : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
  return
}

// -----

func.func @allocate_negative() {
  %n = "migraphx.literal"() {value = dense<[2, -3]> : tensor<2xi64>} : () -> tensor<2xi64>
  // expected-error @+1 {{'migraphx.allocate' op expected extents, got [2, -3]}}
  %0 = "migraphx.allocate"(%n) : (tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @dynamic_range_delta_expected_number_other_than_0() {
  %n = "migraphx.literal"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %z = "migraphx.literal"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  // expected-error @+1 {{'migraphx.dynamic_range' op delta expected a number other than 0, got 0}}
  %0 = "migraphx.dynamic_range"(%z, %n, %z) : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi64>
  return
}

// -----

func.func @unpack_int4_type(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.unpack_int4' op expected i8 or ui8, got f32}}
  %0 = "migraphx.unpack_int4"(%a) : (tensor<2x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @pack_fp4_odd(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.pack_fp4' op expected an even extent along axis 1, got 3}}
  %0 = "migraphx.pack_fp4"(%a) : (tensor<2x3xf32>) -> tensor<2x2xui8>
  return
}

// -----

func.func @lstm_weights(%a: tensor<5x2x3xf32>, %b: tensor<1x12x3xf32>, %c: tensor<1x16x4xf32>) {
  // expected-error @+1 {{'migraphx.lstm' op weights expected dims {1, 16, 3}, got {1, 12, 3}}}
  %0:2 = "migraphx.lstm"(%a, %b, %c) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x12x3xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return
}

// -----

func.func @rnn_var_sl_last_output_lengths(%a: tensor<5x1x2x4xf32>, %b: tensor<3xi64>) {
  // expected-error @+1 {{'migraphx.rnn_var_sl_last_output' op sequence_lens expected dims {2}, got {3}}}
  %0 = "migraphx.rnn_var_sl_last_output"(%a, %b) : (tensor<5x1x2x4xf32>, tensor<3xi64>) -> tensor<1x2x4xf32>
  return
}

// -----

func.func @quant_convolution_padded_beyond_its_type(%x: tensor<1x2x4x4xi8>, %w: tensor<3x2x3x3xi8>) {
  // expected-error @+1 {{'migraphx.quant_convolution' op pad_value expected a value of i8, got 128}}
  %0 = "migraphx.quant_convolution"(%x, %w) {pad_value = 128 : i64} : (tensor<1x2x4x4xi8>, tensor<3x2x3x3xi8>) -> tensor<1x3x2x2xi32>
  return
}
