// What reductions, softmax, topk and lrn refuse.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @axis_range(%arg0: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reduce_sum' op axis (2) is out of range for rank 2, expected -2 to 1}}
  %0 = "migraphx.reduce_sum"(%arg0) {axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @axis_twice(%arg0: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reduce_max' op axes [1, 1] are not distinct}}
  %0 = "migraphx.reduce_max"(%arg0) {axes = array<i64: 1, -1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @kept_dims(%arg0: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reduce_mean' op result 0 expected tensor<2x1xf32>, got tensor<2xf32>}}
  %0 = "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @sum_of_bool(%arg0: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.reduce_sum' op expected a float or integer type, got i1}}
  %0 = "migraphx.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3xi1>) -> tensor<2x1xi1>
  return
}

// -----

func.func @all_of_float(%arg0: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reduce_all' op expected a bool or integer type, got f32}}
  %0 = "migraphx.reduce_all"(%arg0) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @axes_twice_given(%arg0: tensor<2x3xf32>, %arg1: tensor<1xi64>) {
  // expected-error @+1 {{'migraphx.reduce_sum' op expected no attribute 'axes' where the axes are an operand}}
  %0 = "migraphx.reduce_sum"(%arg0, %arg1) {axes = array<i64: 1>} : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @axes_type(%arg0: tensor<2x3xf32>, %arg1: tensor<1xf32>) {
  // expected-error @+1 {{'migraphx.reduce_sum' op operand 'axes_tensor' expected an integer type, got f32}}
  %0 = "migraphx.reduce_sum"(%arg0, %arg1) : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @axes_rank(%arg0: tensor<2x3xf32>, %arg1: tensor<i64>) {
  // expected-error @+1 {{'migraphx.reduce_sum' op operand 'axes_tensor' expected rank 1, got rank 0}}
  %0 = "migraphx.reduce_sum"(%arg0, %arg1) : (tensor<2x3xf32>, tensor<i64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @axes_operands(%arg0: tensor<2x3xf32>, %arg1: tensor<1xi64>, %arg2: tensor<1xi64>) {
  // expected-error @+1 {{'migraphx.reduce_sum' op expected 2 or fewer operands, got 3}}
  %0 = "migraphx.reduce_sum"(%arg0, %arg1, %arg2) : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @arg_axis(%arg0: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.argmax' op axis (1) is out of range for rank 1, expected -1 to 0}}
  %0 = "migraphx.argmax"(%arg0) {axis = 1 : i64} : (tensor<3xf32>) -> tensor<1xi64>
  return
}

// -----

func.func @arg_scalar(%arg0: tensor<f32>) {
  // expected-error @+1 {{'migraphx.argmax' op axis (0) is out of range for rank 0, a scalar has no axis}}
  %0 = "migraphx.argmax"(%arg0) : (tensor<f32>) -> tensor<i64>
  return
}

// -----

func.func @arg_empty(%arg0: tensor<2x0xf32>) {
  // expected-error @+1 {{'migraphx.argmin' op expected elements along axis 1, got none}}
  %0 = "migraphx.argmin"(%arg0) {axis = 1 : i64} : (tensor<2x0xf32>) -> tensor<2x1xi64>
  return
}

// -----

func.func @arg_type(%arg0: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.argmin' op result 0 expected tensor<1xi64>, got tensor<1xi32>}}
  %0 = "migraphx.argmin"(%arg0) : (tensor<2xf32>) -> tensor<1xi32>
  return
}

// -----

func.func @scan_needs_axis(%arg0: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.prefix_scan_sum' op requires attribute 'axis'}}
  %0 = "migraphx.prefix_scan_sum"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scan_of_bool(%arg0: tensor<2xi1>) {
  // expected-error @+1 {{'migraphx.prefix_scan_sum' op expected a float or integer type, got i1}}
  %0 = "migraphx.prefix_scan_sum"(%arg0) {axis = 0 : i64} : (tensor<2xi1>) -> tensor<2xi1>
  return
}

// -----

func.func @softmax_type(%arg0: tensor<2x3xi32>) {
  // expected-error @+1 {{'migraphx.softmax' op expected a float type, got i32}}
  %0 = "migraphx.softmax"(%arg0) : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @softmax_axis(%arg0: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.logsoftmax' op axis (1) is out of range for rank 1, expected -1 to 0}}
  %0 = "migraphx.logsoftmax"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @topk_k(%arg0: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.topk' op k expected 0 to 3 of axis 0, got 4}}
  %0:2 = "migraphx.topk"(%arg0) {k = 4 : i64} : (tensor<3xf32>) -> (tensor<4xf32>, tensor<4xi64>)
  return
}

// -----

func.func @topk_negative(%arg0: tensor<?xf32>) {
  // expected-error @+1 {{'migraphx.topk' op k expected 0 to the extent of axis 0, got -1}}
  %0:2 = "migraphx.topk"(%arg0) {k = -1 : i64} : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi64>)
  return
}

// -----

func.func @topk_indices(%arg0: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.topk' op result 1 expected tensor<2xi64>, got tensor<2xi32>}}
  %0:2 = "migraphx.topk"(%arg0) {k = 2 : i64} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  return
}

// -----

func.func @topk_names(%arg0: tensor<3xf32>, %arg1: tensor<4xi64>) {
  // expected-error @+1 {{'migraphx.topk' op expected operands of equal dims, got {3} and {4}}}
  %0:2 = "migraphx.topk"(%arg0, %arg1) : (tensor<3xf32>, tensor<4xi64>) -> (tensor<1xf32>, tensor<1xi64>)
  return
}

// -----

func.func @topk_count(%arg0: tensor<3xf32>, %arg1: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.topk' op count expected 1 element, got 2}}
  %0:2 = "migraphx.topk"(%arg0, %arg1) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<3xf32>, tensor<2xi64>) -> (tensor<?xf32>, tensor<?xi64>)
  return
}

// -----

func.func @topk_bool(%arg0: tensor<3xi1>) {
  // expected-error @+1 {{'migraphx.topk' op expected a float or integer type, got i1}}
  %0:2 = "migraphx.topk"(%arg0) : (tensor<3xi1>) -> (tensor<1xi1>, tensor<1xi64>)
  return
}

// -----

func.func @lrn_rank(%arg0: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.lrn' op expected channels at axis 1, got dims {3}}}
  %0 = "migraphx.lrn"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @lrn_size(%arg0: tensor<1x3xf32>) {
  // expected-error @+1 {{'migraphx.lrn' op size expected at least 1, got 0}}
  %0 = "migraphx.lrn"(%arg0) {size = 0 : i64} : (tensor<1x3xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @reduce_min_axis(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reduce_min' op axis (2) is out of range for rank 2, expected -2 to 1}}
  %0 = "migraphx.reduce_min"(%a) {axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reduce_prod_bool(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.reduce_prod' op expected a float or integer type, got i1}}
  %0 = "migraphx.reduce_prod"(%a) {axes = array<i64: 1>} : (tensor<2x3xi1>) -> tensor<2x1xi1>
  return
}

// -----

func.func @reduce_any_float(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.reduce_any' op expected a bool or integer type, got f32}}
  %0 = "migraphx.reduce_any"(%a) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return
}
