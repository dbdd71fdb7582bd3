// Verifier errors of views and buffer ops.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @reshape_number_dims_does_not_match_result(%a: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op number of dims (2) does not match result rank (3)}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: 4, 6>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @reshape_dims_expected_2_elements_2(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op dims [2, 3] expected 2 elements as in {2}, got 6}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: 2, 3>} : (tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_dims_expected_at_most_one_1(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op dims expected at most one -1, got [-1, -1]}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: -1, -1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_dims_do_not_divide_elements_2(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op dims [-1, 4] do not divide the elements of {2, 3}}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: -1, 4>} : (tensor<2x3xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @reshape_dims_0_at_1_beyond_input(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op dims has 0 at 1, beyond the input rank (1)}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: 2, 0>} : (tensor<2xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @reshape_dims_expected_extents_0_or_1(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op dims expected extents, 0 or -1, got [-2]}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: -2>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reshape_result_type(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op result 0 expected tensor<2x3xf32>, got tensor<2x4xf32>}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: 0, -1>} : (tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @reshape_result_type_b(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op result 0 expected tensor<3x2xf32>, got tensor<3x2xf64>}}
  %0 = "migraphx.reshape"(%a) {dims = array<i64: 3, 2>} : (tensor<2x3xf32>) -> tensor<3x2xf64>
  return
}

// -----

func.func @reshape_expected_either_attribute_dims_or_operand(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.reshape' op expected either attribute 'dims' or operand 'dims_tensor', got both}}
  %0 = "migraphx.reshape"(%a, %b) {dims = array<i64: 3, 2>} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @reshape_allowzero_expected_operand(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op attribute 'allowzero' expected operand 'dims_tensor'}}
  %0 = "migraphx.reshape"(%a) {allowzero = true, dims = array<i64: 3, 2>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @reshape_number_dims_does_not_match_result_b(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.reshape' op number of dims (2) does not match result rank (1)}}
  %0 = "migraphx.reshape"(%a, %b) {} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<6xf32>
  return
}

// -----

func.func @reshape_operand_dims_tensor_expected_static_length(%a: tensor<2x3xf32>, %b: tensor<?xi64>) {
  // expected-error @+1 {{'migraphx.reshape' op operand 'dims_tensor' expected a static length, got ?}}
  %0 = "migraphx.reshape"(%a, %b) {} : (tensor<2x3xf32>, tensor<?xi64>) -> tensor<6xf32>
  return
}

// -----

func.func @reshape_operand_dims_tensor_expected_integer_type(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op operand 'dims_tensor' expected an integer type, got f32}}
  %0 = "migraphx.reshape"(%a, %b) {} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @reshape_attribute_dims_expected_array_i64(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reshape' op attribute 'dims' expected an array<i64: ...>, got 3 : i64}}
  %0 = "migraphx.reshape"(%a) {dims = 3 : i64} : (tensor<2x3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @transpose_permutation_expected_each_0_1_once(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.transpose' op permutation expected each of 0 to 1 once for rank 2, got [0, 0]}}
  %0 = "migraphx.transpose"(%a) {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @transpose_requires_attribute_permutation(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.transpose' op requires attribute 'permutation'}}
  %0 = "migraphx.transpose"(%a) {} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @layout_permutation_expected_each_0_1_once(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.layout' op permutation expected each of 0 to 1 once for rank 2, got [1]}}
  %0 = "migraphx.layout"(%a) {permutation = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @flatten_axis_out_range_rank_2_expected(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.flatten' op axis (3) is out of range for rank 2, expected -2 to 2}}
  %0 = "migraphx.flatten"(%a) {axis = 3 : i64} : (tensor<2x3xf32>) -> tensor<6x1xf32>
  return
}

// -----

func.func @squeeze_dim_0_expected_extent_1(%a: tensor<2x1xf32>) {
  // expected-error @+1 {{'migraphx.squeeze' op dim 0 expected extent 1, got 2}}
  %0 = "migraphx.squeeze"(%a) {axes = array<i64: 0>} : (tensor<2x1xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @squeeze_axis_out_range_rank_2_expected(%a: tensor<2x1xf32>) {
  // expected-error @+1 {{'migraphx.squeeze' op axis (2) is out of range for rank 2, expected -2 to 1}}
  %0 = "migraphx.squeeze"(%a) {axes = array<i64: 2>} : (tensor<2x1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @squeeze_axes_not_distinct(%a: tensor<1x1xf32>) {
  // expected-error @+1 {{'migraphx.squeeze' op axes [0, 0] are not distinct}}
  %0 = "migraphx.squeeze"(%a) {axes = array<i64: 0, -2>} : (tensor<1x1xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @unsqueeze_axes_not_distinct(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.unsqueeze' op axes [0, 0] are not distinct}}
  %0 = "migraphx.unsqueeze"(%a) {axes = array<i64: 0, 0>} : (tensor<2xf32>) -> tensor<1x1x2xf32>
  return
}

// -----

func.func @unsqueeze_axis_out_range_rank_2_expected(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.unsqueeze' op axis (3) is out of range for rank 2, expected -2 to 1}}
  %0 = "migraphx.unsqueeze"(%a) {axes = array<i64: 3>} : (tensor<2xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @unsqueeze_step_does_not_divide_dim_0(%a: tensor<10xf32>) {
  // expected-error @+1 {{'migraphx.unsqueeze' op step (3) does not divide dim 0 (10)}}
  %0 = "migraphx.unsqueeze"(%a) {axes = array<i64: 0>, steps = array<i64: 3>} : (tensor<10xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @unsqueeze_expected_many_steps_axes(%a: tensor<10xf32>) {
  // expected-error @+1 {{'migraphx.unsqueeze' op expected as many steps as axes (1), got 2}}
  %0 = "migraphx.unsqueeze"(%a) {axes = array<i64: 0>, steps = array<i64: 2, 5>} : (tensor<10xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @unsqueeze_steps_expected_at_least_1(%a: tensor<10xf32>) {
  // expected-error @+1 {{'migraphx.unsqueeze' op steps expected at least 1, got [0]}}
  %0 = "migraphx.unsqueeze"(%a) {axes = array<i64: 0>, steps = array<i64: 0>} : (tensor<10xf32>) -> tensor<1x10xf32>
  return
}

// -----

func.func @unsqueeze_step_at_axis_1_no_input(%a: tensor<10xf32>) {
  // expected-error @+1 {{'migraphx.unsqueeze' op step (2) at axis 1 has no input axis to split}}
  %0 = "migraphx.unsqueeze"(%a) {axes = array<i64: 1>, steps = array<i64: 2>} : (tensor<10xf32>) -> tensor<10x2xf32>
  return
}

// -----

func.func @as_shape_shape_expected_6_elements(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.as_shape' op shape expected 6 elements, got 5}}
  %0 = "migraphx.as_shape"(%a) {shape = tensor<5xf32>} : (tensor<2x3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @as_shape_shape_expected_type_f32(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.as_shape' op shape expected type f32, got i32}}
  %0 = "migraphx.as_shape"(%a) {shape = tensor<6xi32>} : (tensor<2x3xf32>) -> tensor<6xi32>
  return
}

// -----

func.func @as_shape_attribute_shape_expected_tensor_type(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.as_shape' op attribute 'shape' expected a tensor type, got f32}}
  %0 = "migraphx.as_shape"(%a) {shape = f32} : (tensor<2x3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @load_offset_expected_multiple_4(%a: tensor<64xi8>) {
  // expected-error @+1 {{'migraphx.load' op offset expected a multiple of 4, got 2}}
  %0 = "migraphx.load"(%a) {shape = tensor<4xf32>, offset = 2 : i64} : (tensor<64xi8>) -> tensor<4xf32>
  return
}

// -----

func.func @load_buffer_expected_at_least_20_bytes(%a: tensor<16xi8>) {
  // expected-error @+1 {{'migraphx.load' op buffer expected at least 20 bytes, got 16}}
  %0 = "migraphx.load"(%a) {shape = tensor<4xf32>, offset = 4 : i64} : (tensor<16xi8>) -> tensor<4xf32>
  return
}

// -----

func.func @load_buffer_expected(%a: tensor<16xf32>) {
  // expected-error @+1 {{'migraphx.load' op buffer expected tensor<?xi8>, got tensor<16xf32>}}
  %0 = "migraphx.load"(%a) {shape = tensor<4xf32>} : (tensor<16xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @outline_shape_expected_static_dims() {
  // expected-error @+1 {{'migraphx.outline' op shape expected static dims, got tensor<?xf32>}}
  %0 = "migraphx.outline"() {shape = tensor<?xf32>} : () -> tensor<?xf32>
  return
}

// -----

func.func @capture_ins_index_expected_at_least_0(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.capture' op ins_index expected at least 0, got -1}}
  %0 = "migraphx.capture"(%a) {ins_index = -1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @load_dynamic(%a: tensor<64xi8>) {
  // expected-error @+1 {{'migraphx.load' op shape expected static dims, got tensor<?xf32>}}
  %0 = "migraphx.load"(%a) {shape = tensor<?xf32>} : (tensor<64xi8>) -> tensor<?xf32>
  return
}

// -----

func.func @identity_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.identity' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.identity"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @contiguous_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.contiguous' op result 0 expected tensor<2x3xf32>, got tensor<2x3xf16>}}
  %0 = "migraphx.contiguous"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf16>
  return
}

// -----

func.func @reshape_lazy_count(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reshape_lazy' op dims [4, 2] expected 6 elements as in {2, 3}, got 8}}
  %0 = "migraphx.reshape_lazy"(%a) {dims = array<i64: 4, 2>} : (tensor<2x3xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @unknown_result(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.unknown' op requires attribute 'op'}}
  %0 = "migraphx.unknown"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}
