// Verifier errors of gathers, scatters, index and cache ops.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @gather_0(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.gather' op indices expected an integer type, got f32}}
  %0 = "migraphx.gather"(%a, %b) {} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_1(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.gather' op axis (2) is out of range for rank 2, expected -2 to 1}}
  %0 = "migraphx.gather"(%a, %b) {axis = 2 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_2(%a: tensor<0x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.gather' op dim 0 expected at least 1 element to gather, got 0}}
  %0 = "migraphx.gather"(%a, %b) {} : (tensor<0x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_3(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.gather' op result 0 expected tensor<2x2xf32>, got tensor<2x3xf32>}}
  %0 = "migraphx.gather"(%a, %b) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gathernd_4(%a: tensor<2x3xf32>, %b: tensor<4x3xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op index tuples of 3 expected data of rank 3 or more, got tensor<2x3xf32>}}
  %0 = "migraphx.gathernd"(%a, %b) {} : (tensor<2x3xf32>, tensor<4x3xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gathernd_5(%a: tensor<2x3xf32>, %b: tensor<4x?xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op indices expected a static last dim, got ?}}
  %0 = "migraphx.gathernd"(%a, %b) {} : (tensor<2x3xf32>, tensor<4x?xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gathernd_6(%a: tensor<2x3xf32>, %b: tensor<4x1xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op batch dims {2} and {4} do not match}}
  %0 = "migraphx.gathernd"(%a, %b) {batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gathernd_7(%a: tensor<2x3xf32>, %b: tensor<2x1xi64>) {
  // expected-error @+1 {{'migraphx.gathernd' op batch_dims expected less than 2 and at most 2, got 2}}
  %0 = "migraphx.gathernd"(%a, %b) {batch_dims = 2 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gathernd_8(%a: tensor<2x3xf32>, %b: tensor<i64>) {
  // expected-error @+1 {{'migraphx.gathernd' op indices expected rank 1 or more, got rank 0}}
  %0 = "migraphx.gathernd"(%a, %b) {} : (tensor<2x3xf32>, tensor<i64>) -> tensor<3xf32>
  return
}

// -----

func.func @onehot_9(%a: tensor<3xi64>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op expected one of attribute 'depth' and operand 'depth_input'}}
  %0 = "migraphx.onehot"(%a, %b) {} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @onehot_10(%a: tensor<3xi64>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op values expected 2 elements, got 3}}
  %0 = "migraphx.onehot"(%a, %b) {depth = 4 : i64} : (tensor<3xi64>, tensor<3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @onehot_11(%a: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op indices expected an integer type, got f32}}
  %0 = "migraphx.onehot"(%a, %b) {depth = 4 : i64} : (tensor<3xf32>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @onehot_12(%a: tensor<3xi64>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.onehot' op depth expected at least 0, got -4}}
  %0 = "migraphx.onehot"(%a, %b) {depth = -4 : i64} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @nonzero_13(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.nonzero' op result 0 expected tensor<2x?xi64>, got tensor<2x?xi32>}}
  %0 = "migraphx.nonzero"(%a) {} : (tensor<2x3xf32>) -> tensor<2x?xi32>
  return
}

// -----

func.func @nonmaxsuppression_14(%a: tensor<1x6x4xf32>, %b: tensor<1x2x5xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op scores expected 1 batches of 6 boxes as tensor<1x6x4xf32>, got tensor<1x2x5xf32>}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b) : (tensor<1x6x4xf32>, tensor<1x2x5xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @nonmaxsuppression_15(%a: tensor<1x6x3xf32>, %b: tensor<1x2x6xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op boxes expected 4 numbers each, got 3}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b) : (tensor<1x6x3xf32>, tensor<1x2x6xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @nonmaxsuppression_16(%a: tensor<1x6x4xf32>, %b: tensor<1x2x6xf32>, %c: tensor<1xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op max_output_boxes_per_class expected an integer type, got f32}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b, %c) : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<1xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @nonmaxsuppression_17(%a: tensor<1x6x4xf32>, %b: tensor<1x2x6xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.nonmaxsuppression' op iou_threshold expected 1 element, got 2}}
  %0 = "migraphx.nonmaxsuppression"(%a, %b, %c) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<2xf32>) -> tensor<?x3xi64>
  return
}

// -----

func.func @unique_18(%a: tensor<6xf32>) {
  // expected-error @+1 {{'migraphx.unique' op axis (1) is out of range for rank 1, expected -1 to 0}}
  %0:4 = "migraphx.unique"(%a) {axis = 1 : i64} : (tensor<6xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>)
  return
}

// -----

func.func @unique_19(%a: tensor<6xf32>) {
  // expected-error @+1 {{'migraphx.unique' op result 2 expected tensor<6xi64>, got tensor<5xi64>}}
  %0:4 = "migraphx.unique"(%a) {} : (tensor<6xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<5xi64>, tensor<?xi64>)
  return
}

// -----

func.func @scatter_none_20(%a: tensor<3x3xf32>, %b: tensor<2x3xi64>, %c: tensor<2x2xf32>) {
  // expected-error @+1 {{'migraphx.scatter_none' op updates expected dims {2, 3} as the indices, got {2, 2}}}
  %0 = "migraphx.scatter_none"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x2xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_add_21(%a: tensor<3x3xf32>, %b: tensor<2x4xi64>, %c: tensor<2x4xf32>) {
  // expected-error @+1 {{'migraphx.scatter_add' op indices expected at most 3 elements at dim 1, got 4}}
  %0 = "migraphx.scatter_add"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_max_22(%a: tensor<3x3xf32>, %b: tensor<2xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.scatter_max' op indices expected rank 2 as the data, got rank 1}}
  %0 = "migraphx.scatter_max"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_mul_23(%a: tensor<3x3xf32>, %b: tensor<2x3xi64>, %c: tensor<2x3xf64>) {
  // expected-error @+1 {{'migraphx.scatter_mul' op updates expected type f32 as the data, got f64}}
  %0 = "migraphx.scatter_mul"(%a, %b, %c) {} : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf64>) -> tensor<3x3xf32>
  return
}

// -----

func.func @scatter_min_24(%a: tensor<0x3xf32>, %b: tensor<2x3xi64>, %c: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.scatter_min' op dim 0 expected at least 1 element to write to, got 0}}
  %0 = "migraphx.scatter_min"(%a, %b, %c) {} : (tensor<0x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<0x3xf32>
  return
}

// -----

func.func @scatternd_none_25(%a: tensor<3x4xf32>, %b: tensor<2x1xi64>, %c: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_none' op updates expected dims {2, 4}, got {2, 3}}}
  %0 = "migraphx.scatternd_none"(%a, %b, %c) {} : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @scatternd_add_26(%a: tensor<3x4xf32>, %b: tensor<2x3xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_add' op index tuples of 3 expected data of rank 3 or more, got tensor<3x4xf32>}}
  %0 = "migraphx.scatternd_add"(%a, %b, %c) {} : (tensor<3x4xf32>, tensor<2x3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @scatternd_max_27(%a: tensor<3x4xf32>, %b: tensor<2x?xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.scatternd_max' op indices expected a static last dim, got ?}}
  %0 = "migraphx.scatternd_max"(%a, %b, %c) {} : (tensor<3x4xf32>, tensor<2x?xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @concat_past_present_28(%a: tensor<1x2x1x8xf32>, %b: tensor<1xi32>, %c: tensor<1x3x64x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op input expected the batch, heads and size of tensor<1x3x64x8xf32>, got tensor<1x2x1x8xf32>}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c) {} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x3x64x8xf32>) -> tensor<1x3x64x8xf32>
  return
}

// -----

func.func @concat_past_present_29(%a: tensor<1x2x1x8xf32>, %b: tensor<2xi32>, %c: tensor<1x2x64x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op seqlens_k expected one element per batch entry, got tensor<2xi32>}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c) {} : (tensor<1x2x1x8xf32>, tensor<2xi32>, tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32>
  return
}

// -----

func.func @concat_past_present_30(%a: tensor<1x2x1x8xf32>, %b: tensor<1xi32>, %c: tensor<1x2x64x8xf32>) {
  // expected-error @+1 {{'migraphx.concat_past_present' op kv_num_heads expected 2, got 3}}
  %0 = "migraphx.concat_past_present"(%a, %b, %c) {kv_num_heads = 3 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32>
  return
}

// -----

func.func @gqa_rotary_embedding_31(%a: tensor<1x4x1x8xf32>, %b: tensor<1xi32>, %c: tensor<64x4xf32>, %d: tensor<64x4xf32>) {
  // expected-error @+1 {{'migraphx.gqa_rotary_embedding' op input expected 3 heads (1 + 2 * 1), got 4}}
  %0 = "migraphx.gqa_rotary_embedding"(%a, %b, %c, %d) {} : (tensor<1x4x1x8xf32>, tensor<1xi32>, tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<1x4x1x8xf32>
  return
}

// -----

func.func @gqa_rotary_embedding_32(%a: tensor<1x3x1x8xf32>, %b: tensor<1xi32>, %c: tensor<64x5xf32>, %d: tensor<64x5xf32>) {
  // expected-error @+1 {{'migraphx.gqa_rotary_embedding' op caches expected at most 4 columns, got 5}}
  %0 = "migraphx.gqa_rotary_embedding"(%a, %b, %c, %d) {} : (tensor<1x3x1x8xf32>, tensor<1xi32>, tensor<64x5xf32>, tensor<64x5xf32>) -> tensor<1x3x1x8xf32>
  return
}

// -----

func.func @gqa_rotary_embedding_33(%a: tensor<1x3x1x8xf32>, %b: tensor<1xi32>, %c: tensor<64x4xf32>, %d: tensor<32x4xf32>) {
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

func.func @scatternd_rank_0(%a: tensor<3x4xf32>, %b: tensor<i64>, %c: tensor<f32>) {
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
