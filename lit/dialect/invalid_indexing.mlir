// Verifier errors of gathers, scatters, index and cache ops.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @gather_indices_expected_integer_type(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.gather' op indices expected an integer type, got f32}}
  %0 = "migraphx.gather"(%a, %b) {} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_axis_out_range_rank_2_expected(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.gather' op axis (2) is out of range for rank 2, expected -2 to 1}}
  %0 = "migraphx.gather"(%a, %b) {axis = 2 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_dim_0_expected_at_least_1(%a: tensor<0x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.gather' op dim 0 expected at least 1 element to gather, got 0}}
  %0 = "migraphx.gather"(%a, %b) {} : (tensor<0x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_result_type(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.gather' op result 0 expected tensor<2x2xf32>, got tensor<2x3xf32>}}
  %0 = "migraphx.gather"(%a, %b) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gathernd_index_tuples_3_expected_data_rank(%a: tensor<2x3xf32>, %b: tensor<4x3xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op index tuples of 3 expected data of rank 3 or more, got tensor<2x3xf32>}}
  %0 = "migraphx.gathernd"(%a, %b) {} : (tensor<2x3xf32>, tensor<4x3xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gathernd_indices_expected_static_last_dim(%a: tensor<2x3xf32>, %b: tensor<4x?xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op indices expected a static last dim, got ?}}
  %0 = "migraphx.gathernd"(%a, %b) {} : (tensor<2x3xf32>, tensor<4x?xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gathernd_batch_dims_2_4_do_not(%a: tensor<2x3xf32>, %b: tensor<4x1xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op batch dims {2} and {4} do not match}}
  %0 = "migraphx.gathernd"(%a, %b) {batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gathernd_batch_dims_expected_less_than_2_at(%a: tensor<2x3xf32>, %b: tensor<2x1xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op batch_dims expected less than 2 and at most 2, got 2}}
  %0 = "migraphx.gathernd"(%a, %b) {batch_dims = 2 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gathernd_indices_expected_rank_1_or_more(%a: tensor<2x3xf32>, %b: tensor<i64>) {
  // expected-error @+1 {{'migraphx.gathernd' op indices expected rank 1 or more, got rank 0}}
  %0 = "migraphx.gathernd"(%a, %b) {} : (tensor<2x3xf32>, tensor<i64>) -> tensor<3xf32>
  return
}

// -----

func.func @onehot_expected_one_attribute_depth_operand_depth_input(%a: tensor<3xi64>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op expected one of attribute 'depth' and operand 'depth_input'}}
  %0 = "migraphx.onehot"(%a, %b) {} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @onehot_values_expected_2_elements(%a: tensor<3xi64>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op values expected 2 elements, got 3}}
  %0 = "migraphx.onehot"(%a, %b) {depth = 4 : i64} : (tensor<3xi64>, tensor<3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @onehot_indices_expected_integer_type(%a: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op indices expected an integer type, got f32}}
  %0 = "migraphx.onehot"(%a, %b) {depth = 4 : i64} : (tensor<3xf32>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @onehot_depth_expected_at_least_0(%a: tensor<3xi64>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op depth expected at least 0, got -4}}
  %0 = "migraphx.onehot"(%a, %b) {depth = -4 : i64} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @nonzero_result_type(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.nonzero' op result 0 expected tensor<2x?xi64>, got tensor<2x?xi32>}}
  %0 = "migraphx.nonzero"(%a) {} : (tensor<2x3xf32>) -> tensor<2x?xi32>
  return
}

// -----

func.func @nonmaxsuppression_scores_expected_1_batches_6_boxes(%a: tensor<1x6x4xf32>, %b: tensor<1x2x5xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op scores expected 1 batches of 6 boxes as tensor<1x6x4xf32>, got tensor<1x2x5xf32>}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b) : (tensor<1x6x4xf32>, tensor<1x2x5xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @nonmaxsuppression_boxes_expected_4_numbers_each(%a: tensor<1x6x3xf32>, %b: tensor<1x2x6xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op boxes expected 4 numbers each, got 3}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b) : (tensor<1x6x3xf32>, tensor<1x2x6xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @nonmaxsuppression_max_output_boxes_per_class_expected_integer_type(%a: tensor<1x6x4xf32>, %b: tensor<1x2x6xf32>, %c: tensor<1xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op max_output_boxes_per_class expected an integer type, got f32}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b, %c) : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<1xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @nonmaxsuppression_iou_threshold_expected_1_element(%a: tensor<1x6x4xf32>, %b: tensor<1x2x6xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op iou_threshold expected 1 element, got 2}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b, %c) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<2xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @unique_axis_out_range_rank_1_expected(%a: tensor<6xf32>) {
  // expected-error @+1 {{'migraphx.unique' op axis (1) is out of range for rank 1, expected -1 to 0}}
  %0:4 = "migraphx.unique"(%a) {axis = 1 : i64} : (tensor<6xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>)
  return
}

// -----

func.func @unique_result_2_expected(%a: tensor<6xf32>) {
  // expected-error @+1 {{'migraphx.unique' op result 2 expected tensor<6xi64>, got tensor<5xi64>}}
  %0:4 = "migraphx.unique"(%a) {} : (tensor<6xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<5xi64>, tensor<?xi64>)
  return
}

// -----

func.func @scatter_none_updates_expected_dims_2_3_indices(%a: tensor<3x3xf32>, %b: tensor<2x3xi64>, %c: tensor<2x2xf32>) {
  // expected-error @+1 {{'migraphx.scatter_none' op updates expected dims {2, 3} as the indices, got {2, 2}}}
  %0 = "migraphx.scatter_none"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x2xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_add_indices_expected_at_most_3_elements(%a: tensor<3x3xf32>, %b: tensor<2x4xi64>, %c: tensor<2x4xf32>) {
  // expected-error @+1 {{'migraphx.scatter_add' op indices expected at most 3 elements at dim 1, got 4}}
  %0 = "migraphx.scatter_add"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_max_indices_expected_rank_2_data(%a: tensor<3x3xf32>, %b: tensor<2xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.scatter_max' op indices expected rank 2 as the data, got rank 1}}
  %0 = "migraphx.scatter_max"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_mul_updates_expected_type_f32_data(%a: tensor<3x3xf32>, %b: tensor<2x3xi64>, %c: tensor<2x3xf64>) {
  // expected-error @+1 {{'migraphx.scatter_mul' op updates expected type f32 as the data, got f64}}
  %0 = "migraphx.scatter_mul"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf64>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_min_dim_0_expected_at_least_1(%a: tensor<0x3xf32>, %b: tensor<2x3xi64>, %c: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.scatter_min' op dim 0 expected at least 1 element to write to, got 0}}
  %0 = "migraphx.scatter_min"(%a, %b, %c) {} : (tensor<0x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<0x3xf32>
  return
}

// -----

func.func @scatternd_none_updates_expected_dims_2_4(%a: tensor<3x4xf32>, %b: tensor<2x1xi64>, %c: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_none' op updates expected dims {2, 4}, got {2, 3}}}
  %0 = "migraphx.scatternd_none"(%a, %b, %c) {} : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @scatternd_add_index_tuples_3_expected_data_rank(%a: tensor<3x4xf32>, %b: tensor<2x3xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_add' op index tuples of 3 expected data of rank 3 or more, got tensor<3x4xf32>}}
  %0 = "migraphx.scatternd_add"(%a, %b, %c) {} : (tensor<3x4xf32>, tensor<2x3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @scatternd_max_indices_expected_static_last_dim(%a: tensor<3x4xf32>, %b: tensor<2x?xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_max' op indices expected a static last dim, got ?}}
  %0 = "migraphx.scatternd_max"(%a, %b, %c) {} : (tensor<3x4xf32>, tensor<2x?xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @concat_past_present_input_expected_batch_heads_size(%a: tensor<1x2x1x8xf32>, %b: tensor<1xi32>, %c: tensor<1x3x64x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op input expected the batch, heads and size of tensor<1x3x64x8xf32>, got tensor<1x2x1x8xf32>}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c) {} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x3x64x8xf32>) -> tensor<1x3x64x8xf32>
  return
}

// -----

func.func @concat_past_present_seqlens_k_expected_one_element_per_batch(%a: tensor<1x2x1x8xf32>, %b: tensor<2xi32>, %c: tensor<1x2x64x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op seqlens_k expected one element per batch entry, got tensor<2xi32>}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c) {} : (tensor<1x2x1x8xf32>, tensor<2xi32>, tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32>
  return
}

// -----

func.func @concat_past_present_rows_expected_one_element(%a: tensor<1x2x1x8xf32>, %b: tensor<1xi32>, %c: tensor<1x2x64x8xf32>, %d: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op rows expected one element, got tensor<2xi64>}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c, %d) {} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x64x8xf32>, tensor<2xi64>) -> tensor<1x2x64x8xf32>
  return
}

// -----

func.func @concat_past_present_cos_without_sin(%a: tensor<1x2x1x8xf32>, %b: tensor<1xi32>, %c: tensor<1x2x64x8xf32>, %d: tensor<1x1x1x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op cos expected sin beside it}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c, %d) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x64x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x2x64x8xf32>
  return
}

// -----

func.func @concat_past_present_angles_of_heads(%a: tensor<1x2x1x8xf32>, %b: tensor<1xi32>, %c: tensor<1x2x64x8xf32>, %d: tensor<1x2x1x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op cos and sin expected the dims (1, 1, 1, 8), got tensor<1x2x1x8xf32>}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c, %d, %d) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1>} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x64x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>) -> tensor<1x2x64x8xf32>
  return
}

// -----

func.func @concat_past_present_odd_size_turned(%a: tensor<1x2x1x7xf32>, %b: tensor<1xi32>, %c: tensor<1x2x64x7xf32>, %d: tensor<1x1x1x7xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op rows to be turned expected an even size, got 7}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c, %d, %d) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1>} : (tensor<1x2x1x7xf32>, tensor<1xi32>, tensor<1x2x64x7xf32>, tensor<1x1x1x7xf32>, tensor<1x1x1x7xf32>) -> tensor<1x2x64x7xf32>
  return
}

// -----

func.func @concat_past_present_kv_num_heads_expected_2(%a: tensor<1x2x1x8xf32>, %b: tensor<1xi32>, %c: tensor<1x2x64x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op kv_num_heads expected 2, got 3}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c) {kv_num_heads = 3 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32>
  return
}

// -----

func.func @gqa_rotary_embedding_input_expected_3_heads(%a: tensor<1x4x1x8xf32>, %b: tensor<1xi32>, %c: tensor<64x4xf32>, %d: tensor<64x4xf32>) {
  // expected-error @+1 {{'migraphx.gqa_rotary_embedding' op input expected 3 heads (1 + 2 * 1), got 4}}
  %0 = "migraphx.gqa_rotary_embedding"(%a, %b, %c, %d) {} : (tensor<1x4x1x8xf32>, tensor<1xi32>, tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<1x4x1x8xf32>
  return
}

// -----

func.func @gqa_rotary_embedding_caches_expected_at_most_4_columns(%a: tensor<1x3x1x8xf32>, %b: tensor<1xi32>, %c: tensor<64x5xf32>, %d: tensor<64x5xf32>) {
  // expected-error @+1 {{'migraphx.gqa_rotary_embedding' op caches expected at most 4 columns, got 5}}
  %0 = "migraphx.gqa_rotary_embedding"(%a, %b, %c, %d) {} : (tensor<1x3x1x8xf32>, tensor<1xi32>, tensor<64x5xf32>, tensor<64x5xf32>) -> tensor<1x3x1x8xf32>
  return
}

// -----

func.func @gqa_rotary_embedding_sin_cache_expected_dims(%a: tensor<1x3x1x8xf32>, %b: tensor<1xi32>, %c: tensor<64x4xf32>, %d: tensor<32x4xf32>) {
  // expected-error @+1 {{'migraphx.gqa_rotary_embedding' op sin_cache expected the dims of tensor<64x4xf32>, got tensor<32x4xf32>}}
  %0 = "migraphx.gqa_rotary_embedding"(%a, %b, %c, %d) {} : (tensor<1x3x1x8xf32>, tensor<1xi32>, tensor<64x4xf32>, tensor<32x4xf32>) -> tensor<1x3x1x8xf32>
  return
}

// -----

func.func @gqa_of_integers(%a: tensor<1x3x1x8xi32>, %b: tensor<1xi32>, %c: tensor<64x4xi32>, %d: tensor<64x4xi32>) {
  // expected-error @+1 {{'migraphx.gqa_rotary_embedding' op input expected a float type, got i32}}
  %0 = "migraphx.gqa_rotary_embedding"(%a, %b, %c, %d) : (tensor<1x3x1x8xi32>, tensor<1xi32>, tensor<64x4xi32>, tensor<64x4xi32>) -> tensor<1x3x1x8xi32>
  return
}

// -----

func.func @gathernd_nothing(%a: tensor<0x3xf32>, %b: tensor<2x1xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op data expected elements to gather, got tensor<0x3xf32>}}
  %0 = "migraphx.gathernd"(%a, %b) : (tensor<0x3xf32>, tensor<2x1xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @onehot_depths(%a: tensor<3xi64>, %b: tensor<2xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op depth expected 1 element, got 2}}
  %0 = "migraphx.onehot"(%a, %b, %c) : (tensor<3xi64>, tensor<2xi64>, tensor<2xf32>) -> tensor<3x?xf32>
  return
}

// -----

func.func @scatternd_none_indices_expected_rank_1_or_more(%a: tensor<3x4xf32>, %b: tensor<i64>, %c: tensor<f32>) {
  // expected-error @+1 {{'migraphx.scatternd_none' op indices expected rank 1 or more, got rank 0}}
  %0 = "migraphx.scatternd_none"(%a, %b, %c) : (tensor<3x4xf32>, tensor<i64>, tensor<f32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @scatternd_nothing(%a: tensor<0x4xf32>, %b: tensor<2x1xi64>, %c: tensor<2x4xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_none' op data expected elements to write to, got tensor<0x4xf32>}}
  %0 = "migraphx.scatternd_none"(%a, %b, %c) : (tensor<0x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<0x4xf32>
  return
}

// -----

func.func @nonmaxsuppression_of_integers(%a: tensor<1x6x4xi32>, %b: tensor<1x2x6xi32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op boxes expected a float type, got i32}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b) : (tensor<1x6x4xi32>, tensor<1x2x6xi32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @nonmaxsuppression_threshold_type(%a: tensor<1x6x4xf32>, %b: tensor<1x2x6xf32>, %c: tensor<1xi64>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op iou_threshold expected a float type, got i64}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b, %c) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<1xi64>) -> tensor<?x3xi64>
  return
}

// -----

func.func @scatternd_mul_updates(%a: tensor<3x4xf32>, %b: tensor<2x1xi64>, %c: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_mul' op updates expected dims {2, 4}, got {2, 3}}}
  %0 = "migraphx.scatternd_mul"(%a, %b, %c) : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @scatternd_min_indices(%a: tensor<3x4xf32>, %b: tensor<2x1xf32>, %c: tensor<2x4xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_min' op indices expected an integer type, got f32}}
  %0 = "migraphx.scatternd_min"(%a, %b, %c) : (tensor<3x4xf32>, tensor<2x1xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return
}
