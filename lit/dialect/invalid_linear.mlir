// Verifier errors of products and convolutions.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @dot_inner_dims_do_not_match_2(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+1 {{'migraphx.dot' op inner dims do not match: {2, 3} x {4, 5}}}
  %0 = "migraphx.dot"(%a, %b) {} : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @dot_expected_operands_one_rank_2_or(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.dot' op expected operands of one rank, 2 or more, got tensor<2x3xf32> and tensor<3xf32>}}
  %0 = "migraphx.dot"(%a, %b) {} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @dot_batch_dims_1_4_do_not(%a: tensor<1x2x3xf32>, %b: tensor<4x3x5xf32>) {
  // expected-error @+1 {{'migraphx.dot' op batch dims {1} and {4} do not match}}
  %0 = "migraphx.dot"(%a, %b) {} : (tensor<1x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
  return
}

// -----

func.func @dot_expected_operands_one_type(%a: tensor<2x3xf32>, %b: tensor<3x5xf16>) {
  // expected-error @+1 {{'migraphx.dot' op expected operands of one type, got f32 and f16}}
  %0 = "migraphx.dot"(%a, %b) {} : (tensor<2x3xf32>, tensor<3x5xf16>) -> tensor<2x5xf32>
  return
}

// -----

func.func @dot_expected_number_type(%a: tensor<2x3xi1>, %b: tensor<3x5xi1>) {
  // expected-error @+1 {{'migraphx.dot' op expected a number type, got i1}}
  %0 = "migraphx.dot"(%a, %b) {} : (tensor<2x3xi1>, tensor<3x5xi1>) -> tensor<2x5xi1>
  return
}

// -----

func.func @convolution_input_expected_3_channels(%a: tensor<1x4x5x5xf32>, %b: tensor<2x3x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op input expected 3 channels (3 of the weights times group 1), got 4}}
  %0 = "migraphx.convolution"(%a, %b) {} : (tensor<1x4x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  return
}

// -----

func.func @convolution_output_channels_expected_multiple_group(%a: tensor<1x4x5x5xf32>, %b: tensor<3x2x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op output channels (3) expected a multiple of group (2)}}
  %0 = "migraphx.convolution"(%a, %b) {group = 2 : i64} : (tensor<1x4x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32>
  return
}

// -----

func.func @convolution_group_expected_at_least_1(%a: tensor<1x3x5x5xf32>, %b: tensor<2x3x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op group expected at least 1, got 0}}
  %0 = "migraphx.convolution"(%a, %b) {group = 0 : i64} : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  return
}

// -----

func.func @convolution_stride_expected_1_numbers(%a: tensor<1x3x5xf32>, %b: tensor<2x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op stride expected 1 numbers, got 2}}
  %0 = "migraphx.convolution"(%a, %b) {} : (tensor<1x3x5xf32>, tensor<2x3x3xf32>) -> tensor<1x2x3xf32>
  return
}

// -----

func.func @convolution_padding_expected_2_or_4_numbers(%a: tensor<1x3x5x5xf32>, %b: tensor<2x3x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op padding expected 2 or 4 numbers, got 3}}
  %0 = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1, 1>} : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  return
}

// -----

func.func @convolution_padding_expected_no_negative_number(%a: tensor<1x3x5x5xf32>, %b: tensor<2x3x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op padding expected no negative number, got [-1, 0]}}
  %0 = "migraphx.convolution"(%a, %b) {padding = array<i64: -1, 0>} : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  return
}

// -----

func.func @convolution_window_extent_7_does_not_fit(%a: tensor<1x3x5x5xf32>, %b: tensor<2x3x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op window of extent 7 does not fit in spatial dim 0 (5) with padding 0 and 0}}
  %0 = "migraphx.convolution"(%a, %b) {dilation = array<i64: 3, 1>} : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x0x3xf32>
  return
}

// -----

func.func @convolution_stride_expected_at_least_1(%a: tensor<1x3x5x5xf32>, %b: tensor<2x3x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op stride expected at least 1, got [0, 1]}}
  %0 = "migraphx.convolution"(%a, %b) {stride = array<i64: 0, 1>} : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  return
}

// -----

func.func @convolution_weights_expected_rank_4_input(%a: tensor<1x3x5x5xf32>, %b: tensor<2x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op weights expected rank 4 as the input, got rank 3}}
  %0 = "migraphx.convolution"(%a, %b) {} : (tensor<1x3x5x5xf32>, tensor<2x3x3xf32>) -> tensor<1x2x3x3xf32>
  return
}

// -----

func.func @convolution_input_expected_rank_3_or_more(%a: tensor<3x5xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op input expected rank 3 or more, got tensor<3x5xf32>}}
  %0 = "migraphx.convolution"(%a, %b) {} : (tensor<3x5xf32>, tensor<2x3xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @convolution_result_type(%a: tensor<1x5x5x3xf32>, %b: tensor<3x3x3x2xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op result 0 expected tensor<1x3x3x2xf32>, got tensor<1x2x3x3xf32>}}
  %0 = "migraphx.convolution"(%a, %b) {channels_last = true} : (tensor<1x5x5x3xf32>, tensor<3x3x3x2xf32>) -> tensor<1x2x3x3xf32>
  return
}

// -----

func.func @convolution_backwards_input_expected_3_channels_weights(%a: tensor<1x4x5x5xf32>, %b: tensor<3x2x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution_backwards' op input expected 3 channels as the weights, got 4}}
  %0 = "migraphx.convolution_backwards"(%a, %b) {} : (tensor<1x4x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x2x7x7xf32>
  return
}

// -----

func.func @convolution_backwards_input_channels_expected_multiple_group(%a: tensor<1x3x5x5xf32>, %b: tensor<3x2x3x3xf32>) {
  // expected-error @+1 {{'migraphx.convolution_backwards' op input channels (3) expected a multiple of group (2)}}
  %0 = "migraphx.convolution_backwards"(%a, %b) {group = 2 : i64} : (tensor<1x3x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x4x7x7xf32>
  return
}

// -----

func.func @convolution_backwards_spatial_dim_0_expected_result_0(%a: tensor<1x3x1x1xf32>, %b: tensor<3x2x1x1xf32>) {
  // expected-error @+1 {{'migraphx.convolution_backwards' op spatial dim 0 expected a result of 0 or more, got -1}}
  %0 = "migraphx.convolution_backwards"(%a, %b) {padding = array<i64: 1, 1>} : (tensor<1x3x1x1xf32>, tensor<3x2x1x1xf32>) -> tensor<1x2x0x0xf32>
  return
}

// -----

func.func @im2col_batch_expected_1(%a: tensor<2x3x4x4xf32>, %b: tensor<8x3x3x3xf32>) {
  // expected-error @+1 {{'migraphx.im2col' op batch expected 1, got 2}}
  %0 = "migraphx.im2col"(%a, %b) {} : (tensor<2x3x4x4xf32>, tensor<8x3x3x3xf32>) -> tensor<4x27xf32>
  return
}

// -----

func.func @im2col_input_expected_rank_4(%a: tensor<1x3x4xf32>, %b: tensor<8x3x3xf32>) {
  // expected-error @+1 {{'migraphx.im2col' op input expected rank 4, got rank 3}}
  %0 = "migraphx.im2col"(%a, %b) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>} : (tensor<1x3x4xf32>, tensor<8x3x3xf32>) -> tensor<4x27xf32>
  return
}

// -----

func.func @convolution_of_bool(%a: tensor<1x2x4x4xi1>, %b: tensor<3x2x1x1xi1>) {
  // expected-error @+1 {{'migraphx.convolution' op expected a number type, got i1}}
  %0 = "migraphx.convolution"(%a, %b) : (tensor<1x2x4x4xi1>, tensor<3x2x1x1xi1>) -> tensor<1x3x4x4xi1>
  return
}

// -----

func.func @convolution_empty_window(%a: tensor<1x2x4x4xf32>, %b: tensor<3x2x0x1xf32>) {
  // expected-error @+1 {{'migraphx.convolution' op weights expected no empty window, got tensor<3x2x0x1xf32>}}
  %0 = "migraphx.convolution"(%a, %b) : (tensor<1x2x4x4xf32>, tensor<3x2x0x1xf32>) -> tensor<1x3x5x4xf32>
  return
}

// -----

func.func @convolution_backwards_group(%a: tensor<1x2x4x4xf32>, %b: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{'migraphx.convolution_backwards' op group expected at least 1, got 0}}
  %0 = "migraphx.convolution_backwards"(%a, %b) {group = 0 : i64} : (tensor<1x2x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @im2col_channels(%a: tensor<1x3x4x4xf32>, %b: tensor<8x2x1x1xf32>) {
  // expected-error @+1 {{'migraphx.im2col' op input expected 2 channels as the weights, got 3}}
  %0 = "migraphx.im2col"(%a, %b) : (tensor<1x3x4x4xf32>, tensor<8x2x1x1xf32>) -> tensor<16x2xf32>
  return
}
