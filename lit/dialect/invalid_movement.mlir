// Verifier errors of slices, pads and concatenations.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @slice_expected_many_starts_ends_axes(%a: tensor<4x5xf32>) {
  // expected-error @+1 {{'migraphx.slice' op expected as many starts, ends and axes, got 2, 1, 1}}
  %0 = "migraphx.slice"(%a) {axes = array<i64: 0>, starts = array<i64: 0, 1>, ends = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @slice_axis_out_range_rank_2_expected(%a: tensor<4x5xf32>) {
  // expected-error @+1 {{'migraphx.slice' op axis (2) is out of range for rank 2, expected -2 to 1}}
  %0 = "migraphx.slice"(%a) {axes = array<i64: 2>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @slice_axes_not_distinct(%a: tensor<4x5xf32>) {
  // expected-error @+1 {{'migraphx.slice' op axes [0, 0] are not distinct}}
  %0 = "migraphx.slice"(%a) {axes = array<i64: 0, -2>, starts = array<i64: 0, 0>, ends = array<i64: 2, 2>} : (tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @slice_result_type(%a: tensor<4x5xf32>) {
  // expected-error @+1 {{'migraphx.slice' op result 0 expected tensor<3x5xf32>, got tensor<4x5xf32>}}
  %0 = "migraphx.slice"(%a) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 9>} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @slice_expected_either_attribute_starts_or_operand(%a: tensor<4x5xf32>, %b: tensor<1xi64>) {
  // expected-error @+1 {{'migraphx.slice' op expected either attribute 'starts' or operand 'input_starts', got both}}
  %0 = "migraphx.slice"(%a, %b) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 9>} : (tensor<4x5xf32>, tensor<1xi64>) -> tensor<?x5xf32>
  return
}

// -----

func.func @slice_operand_input_starts_expected_static_length(%a: tensor<4x5xf32>, %b: tensor<?xi64>) {
  // expected-error @+1 {{'migraphx.slice' op operand 'input_starts' expected a static length, got ?}}
  %0 = "migraphx.slice"(%a, %b) {axes = array<i64: 0>, ends = array<i64: 9>} : (tensor<4x5xf32>, tensor<?xi64>) -> tensor<?x5xf32>
  return
}

// -----

func.func @step_steps_expected_at_least_1(%a: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.step' op steps expected at least 1, got [0]}}
  %0 = "migraphx.step"(%a) {axes = array<i64: 0>, steps = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @step_expected_many_steps_axes(%a: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.step' op expected as many steps as axes (1), got 2}}
  %0 = "migraphx.step"(%a) {axes = array<i64: 0>, steps = array<i64: 1, 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reverse_axis_out_range_rank_1_expected(%a: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.reverse' op axis (1) is out of range for rank 1, expected -1 to 0}}
  %0 = "migraphx.reverse"(%a) {axes = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @scan_slice_operand_index_expected_1_element(%a: tensor<4x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.scan_slice' op operand 'index' expected 1 element, got 2}}
  %0 = "migraphx.scan_slice"(%a, %b) {} : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<1x3xf32>
  return
}

// -----

func.func @scan_slice_direction_expected_0_or_1(%a: tensor<4x3xf32>, %b: tensor<i64>) {
  // expected-error @+1 {{'migraphx.scan_slice' op direction expected 0 or 1, got 2}}
  %0 = "migraphx.scan_slice"(%a, %b) {direction = 2 : i64} : (tensor<4x3xf32>, tensor<i64>) -> tensor<1x3xf32>
  return
}

// -----

func.func @scan_slice_dim_0_expected_at_least_1(%a: tensor<0x3xf32>, %b: tensor<i64>) {
  // expected-error @+1 {{'migraphx.scan_slice' op dim 0 expected at least 1 element, got 0}}
  %0 = "migraphx.scan_slice"(%a, %b) {} : (tensor<0x3xf32>, tensor<i64>) -> tensor<1x3xf32>
  return
}

// -----

func.func @pad_pads_expected_2_numbers_rank_1(%a: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.pad' op pads expected 2 numbers for rank 1, got 1}}
  %0 = "migraphx.pad"(%a) {pads = array<i64: 1>} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @pad_pads_expected_no_negative_number(%a: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.pad' op pads expected no negative number, got [-1, 0]}}
  %0 = "migraphx.pad"(%a) {pads = array<i64: -1, 0>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @pad_mode_reflect_dim_0_expected_pads(%a: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.pad' op mode reflect of dim 0 expected pads up to 3, got 4}}
  %0 = "migraphx.pad"(%a) {pads = array<i64: 4, 0>, mode = "reflect"} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @pad_mode_edge_dim_0_expected_pads(%a: tensor<0xf32>) {
  // expected-error @+1 {{'migraphx.pad' op mode edge of dim 0 expected pads up to 0, got 1}}
  %0 = "migraphx.pad"(%a) {pads = array<i64: 1, 0>, mode = "edge"} : (tensor<0xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @pad_attribute_mode_expected_one_constant_reflect(%a: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.pad' op attribute 'mode' expected one of constant, reflect, edge, got wrap}}
  %0 = "migraphx.pad"(%a) {pads = array<i64: 1, 0>, mode = "wrap"} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @fixed_pad_max_dims_expected_at_least_3(%a: tensor<?x3xf32>) {
  // expected-error @+1 {{'migraphx.fixed_pad' op max_dims expected at least {?, 3}, got [8, 2]}}
  %0 = "migraphx.fixed_pad"(%a) {max_dims = array<i64: 8, 2>} : (tensor<?x3xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @concat_operand_1_expected_extent_2_at(%a: tensor<2x3xf32>, %b: tensor<3x3xf32>) {
  // expected-error @+1 {{'migraphx.concat' op operand 1 expected extent 2 at dim 0, got 3}}
  %0 = "migraphx.concat"(%a, %b) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @concat_operand_1_expected_rank_2(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.concat' op operand 1 expected rank 2, got rank 1}}
  %0 = "migraphx.concat"(%a, %b) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @concat_expected_operands_one_type(%a: tensor<2x3xf32>, %b: tensor<2x3xf16>) {
  // expected-error @+1 {{'migraphx.concat' op expected operands of one type, got f32 and f16}}
  %0 = "migraphx.concat"(%a, %b) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf16>) -> tensor<2x6xf32>
  return
}

// -----

func.func @concat_axis_out_range_rank_0_scalar(%a: tensor<f32>, %b: tensor<f32>) {
  // expected-error @+1 {{'migraphx.concat' op axis (0) is out of range for rank 0, a scalar has no axis}}
  %0 = "migraphx.concat"(%a, %b) {} : (tensor<f32>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @concat_of_nothing() {
  // expected-error @+1 {{'migraphx.concat' op expected at least 1 operand, got 0}}
  %0 = "migraphx.concat"() : () -> tensor<0xf32>
  return
}
