// Verifier errors of broadcasts and dimensions_of.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @broadcast_input_rank_1_at_axis_2(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.broadcast' op input of rank 1 at axis 2 does not fit result rank 2}}
  %0 = "migraphx.broadcast"(%a) {axis = 2 : i64, out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_input_dims_3_at_axis_0(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.broadcast' op input dims {3} at axis 0 do not match result dims {2, 3}}}
  %0 = "migraphx.broadcast"(%a) {axis = 0 : i64, out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_requires_attribute_out_lens_or_operand_ref(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.broadcast' op requires attribute 'out_lens' or operand 'ref'}}
  %0 = "migraphx.broadcast"(%a) {axis = 0 : i64} : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_expected_either_attribute_out_lens_or_operand(%a: tensor<3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.broadcast' op expected either attribute 'out_lens' or operand 'ref', got both}}
  %0 = "migraphx.broadcast"(%a, %b) {axis = 1 : i64, out_lens = array<i64: 2, 3>} : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_out_dyn_dims_expected_min_max_pairs(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.broadcast' op out_dyn_dims expected min, max pairs, got 3 numbers}}
  %0 = "migraphx.broadcast"(%a) {out_dyn_dims = array<i64: 3, 3, 1>} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @broadcast_out_dyn_dims_dynamic_extent_requires_operand_ref(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.broadcast' op out_dyn_dims with a dynamic extent requires operand 'ref'}}
  %0 = "migraphx.broadcast"(%a) {out_dyn_dims = array<i64: 3, 3, 1, 4>} : (tensor<3xf32>) -> tensor<3x?xf32>
  return
}

// -----

func.func @broadcast_out_lens_expected_no_negative_extent(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.broadcast' op out_lens expected no negative extent, got [3, -1]}}
  %0 = "migraphx.broadcast"(%a) {out_lens = array<i64: 3, -1>} : (tensor<3xf32>) -> tensor<3x1xf32>
  return
}

// -----

func.func @multibroadcast_input_dims_3_do_not_broadcast(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.multibroadcast' op input dims {3} do not broadcast to {2, 4}}}
  %0 = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 2, 4>} : (tensor<3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @multibroadcast_input_dims_2_3_do_not(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.multibroadcast' op input dims {2, 3} do not broadcast to {3}}}
  %0 = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @multibroadcast_requires_attribute_out_lens_or_second_operand(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.multibroadcast' op requires attribute 'out_lens' or a second operand}}
  %0 = "migraphx.multibroadcast"(%a) {} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @multibroadcast_expected_at_least_1_operand() {
  // expected-error @+1 {{'migraphx.multibroadcast' op expected at least 1 operand, got 0}}
  %0 = "migraphx.multibroadcast"() {out_lens = array<i64: 3>} : () -> tensor<3xf32>
  return
}

// -----

func.func @multibroadcast_dims_3_2_4_do_not(%a: tensor<3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+1 {{'migraphx.multibroadcast' op dims {3} and {2, 4} do not broadcast}}
  %0 = "migraphx.multibroadcast"(%a, %b) {} : (tensor<3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @scalar_input_expected_1_element(%a: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.scalar' op input expected 1 element, got 2}}
  %0 = "migraphx.scalar"(%a) {scalar_bcst_dims = array<i64: 3>} : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @scalar_scalar_bcst_dims_expected_no_negative_extent(%a: tensor<1xf32>) {
  // expected-error @+1 {{'migraphx.scalar' op scalar_bcst_dims expected no negative extent, got [-3]}}
  %0 = "migraphx.scalar"(%a) {scalar_bcst_dims = array<i64: -3>} : (tensor<1xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @broadcast_with_dims_operand_dims_expected_rank_1(%a: tensor<2xf32>, %b: tensor<1x2xi64>) {
  // expected-error @+1 {{'migraphx.broadcast_with_dims' op operand 'dims' expected rank 1, got rank 2}}
  %0 = "migraphx.broadcast_with_dims"(%a, %b) {} : (tensor<2xf32>, tensor<1x2xi64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @broadcast_with_dims_operand_dims_expected_integer_type(%a: tensor<2xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.broadcast_with_dims' op operand 'dims' expected an integer type, got f32}}
  %0 = "migraphx.broadcast_with_dims"(%a, %b) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @broadcast_for_dot_expected_operands_rank_2_or_more(%a: tensor<2xf32>, %b: tensor<2x2xf32>) {
  // expected-error @+1 {{'migraphx.broadcast_for_dot' op expected operands of rank 2 or more, got tensor<2xf32>}}
  %0 = "migraphx.broadcast_for_dot"(%a, %b) {} : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @broadcast_for_dot_dims_2_3_do_not_broadcast(%a: tensor<2x1x1xf32>, %b: tensor<3x1x1xf32>) {
  // expected-error @+1 {{'migraphx.broadcast_for_dot' op dims {2} and {3} do not broadcast}}
  %0 = "migraphx.broadcast_for_dot"(%a, %b) {} : (tensor<2x1x1xf32>, tensor<3x1x1xf32>) -> tensor<3x1x1xf32>
  return
}

// -----

func.func @dimensions_of_start_end_not_range_axes_rank(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.dimensions_of' op start (1) to end (3) is not a range of axes of rank 2}}
  %0 = "migraphx.dimensions_of"(%a) {start = 1 : i64, end = 3 : i64} : (tensor<2x3xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @multibroadcast_lens_and_operands(%a: tensor<3xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.multibroadcast' op expected either attribute 'out_lens' or several operands, got both}}
  %0 = "migraphx.multibroadcast"(%a, %b) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @multibroadcast_dynamic_dims(%a: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.multibroadcast' op out_dyn_dims with a dynamic extent requires a second operand}}
  %0 = "migraphx.multibroadcast"(%a) {out_dyn_dims = array<i64: -1, 3>} : (tensor<3xf32>) -> tensor<?x3xf32>
  return
}

// -----

func.func @broadcast_with_dims_dynamic(%a: tensor<3xf32>, %b: tensor<?xi64>) {
  // expected-error @+1 {{'migraphx.broadcast_with_dims' op operand 'dims' expected a static length, got ?}}
  %0 = "migraphx.broadcast_with_dims"(%a, %b) : (tensor<3xf32>, tensor<?xi64>) -> tensor<?x?xf32>
  return
}
