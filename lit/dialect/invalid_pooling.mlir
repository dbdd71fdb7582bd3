// Verifier errors of pooling, ROI align and resize.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @pooling_lengths_expected_2_numbers(%a: tensor<1x3x4x4xf32>) {
  // expected-error @+1 {{'migraphx.pooling' op lengths expected 2 numbers, got 1}}
  %0 = "migraphx.pooling"(%a) {lengths = array<i64: 2>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x3x3xf32>
  return
}

// -----

func.func @pooling_window_extent_5_does_not_fit(%a: tensor<1x3x4x4xf32>) {
  // expected-error @+1 {{'migraphx.pooling' op window of extent 5 does not fit in spatial dim 0 (4) with padding 0 and 0}}
  %0 = "migraphx.pooling"(%a) {lengths = array<i64: 5, 1>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x0x4xf32>
  return
}

// -----

func.func @pooling_attribute_mode_expected_one_average_max(%a: tensor<1x3x4x4xf32>) {
  // expected-error @+1 {{'migraphx.pooling' op attribute 'mode' expected one of average, max, lpnorm, got median}}
  %0 = "migraphx.pooling"(%a) {mode = "median"} : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @pooling_input_expected_rank_3_or_more(%a: tensor<1x3xf32>) {
  // expected-error @+1 {{'migraphx.pooling' op input expected rank 3 or more, got tensor<1x3xf32>}}
  %0 = "migraphx.pooling"(%a) {} : (tensor<1x3xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @pooling_lp_order_expected_at_least_0(%a: tensor<1x3x4x4xf32>) {
  // expected-error @+1 {{'migraphx.pooling' op lp_order expected at least 0, got -1}}
  %0 = "migraphx.pooling"(%a) {lp_order = -1 : i64} : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @pooling_expected_spatial_elements(%a: tensor<1x3x0x4xf32>) {
  // expected-error @+1 {{'migraphx.pooling' op expected spatial elements, got tensor<1x3x0x4xf32>}}
  %0 = "migraphx.pooling"(%a) {dyn_global = true} : (tensor<1x3x0x4xf32>) -> tensor<1x3x1x1xf32>
  return
}

// -----

func.func @pooling_expected_number_type(%a: tensor<1x3x4x4xi1>) {
  // expected-error @+1 {{'migraphx.pooling' op expected a number type, got i1}}
  %0 = "migraphx.pooling"(%a) {} : (tensor<1x3x4x4xi1>) -> tensor<1x3x4x4xi1>
  return
}

// -----

func.func @roialign_batch_indices_expected_5_elements_rois(%a: tensor<1x3x4x4xf32>, %b: tensor<5x4xf32>, %c: tensor<4xi64>) {
  // expected-error @+1 {{'migraphx.roialign' op batch_indices expected 5 elements as the rois, got 4}}
  %0 = "migraphx.roialign"(%a, %b, %c) {} : (tensor<1x3x4x4xf32>, tensor<5x4xf32>, tensor<4xi64>) -> tensor<5x3x1x1xf32>
  return
}

// -----

func.func @roialign_rois_expected_4_numbers_each(%a: tensor<1x3x4x4xf32>, %b: tensor<5x3xf32>, %c: tensor<5xi64>) {
  // expected-error @+1 {{'migraphx.roialign' op rois expected 4 numbers each, got 3}}
  %0 = "migraphx.roialign"(%a, %b, %c) {} : (tensor<1x3x4x4xf32>, tensor<5x3xf32>, tensor<5xi64>) -> tensor<5x3x1x1xf32>
  return
}

// -----

func.func @roialign_batch_indices_expected_integer_type(%a: tensor<1x3x4x4xf32>, %b: tensor<5x4xf32>, %c: tensor<5xf32>) {
  // expected-error @+1 {{'migraphx.roialign' op batch_indices expected an integer type, got f32}}
  %0 = "migraphx.roialign"(%a, %b, %c) {} : (tensor<1x3x4x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<5x3x1x1xf32>
  return
}

// -----

func.func @roialign_output_expected_at_least_1_x(%a: tensor<1x3x4x4xf32>, %b: tensor<5x4xf32>, %c: tensor<5xi64>) {
  // expected-error @+1 {{'migraphx.roialign' op output expected at least 1 x 1, got 1 x 0}}
  %0 = "migraphx.roialign"(%a, %b, %c) {output_width = 0 : i64} : (tensor<1x3x4x4xf32>, tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x3x1x0xf32>
  return
}

// -----

func.func @resize_requires_one_attributes_sizes_scales_or(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.resize' op requires one of attributes 'sizes' and 'scales', or operand 'target'}}
  %0 = "migraphx.resize"(%a) {} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_sizes_expected_2_numbers_rank_2(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.resize' op sizes expected 2 numbers for rank 2, got 1}}
  %0 = "migraphx.resize"(%a) {sizes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_scales_expected_positive_numbers(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.resize' op scales expected positive numbers, got [1.0, 0.0]}}
  %0 = "migraphx.resize"(%a) {scales = array<f64: 1.0, 0.0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_expected_either_attributes_sizes_or_scales(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.resize' op expected either attributes 'sizes' or 'scales' or operand 'target', got both}}
  %0 = "migraphx.resize"(%a, %b) {sizes = array<i64: 2, 3>} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_target_expected_2_elements(%a: tensor<2x3xf32>, %b: tensor<3xi64>) {
  // expected-error @+1 {{'migraphx.resize' op target expected 2 elements, got 3}}
  %0 = "migraphx.resize"(%a, %b) {} : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_antialias_expected_mode_linear_or_cubic(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.resize' op antialias expected mode linear or cubic}}
  %0 = "migraphx.resize"(%a) {sizes = array<i64: 2, 3>, antialias = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_roi_expected_4_numbers_tf_crop_and_resize(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.resize' op roi expected 4 numbers for tf_crop_and_resize, got 0}}
  %0 = "migraphx.resize"(%a) {sizes = array<i64: 2, 3>, coordinate_transformation_mode = "tf_crop_and_resize"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_mode_linear_expected_number_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.resize' op mode linear expected a number type, got i1}}
  %0 = "migraphx.resize"(%a) {sizes = array<i64: 2, 3>, mode = "linear"} : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @resize_bool_target(%a: tensor<2x3xf32>, %b: tensor<2xi1>) {
  // expected-error @+1 {{'migraphx.resize' op target expected integer sizes or float scales, got i1}}
  %0 = "migraphx.resize"(%a, %b) : (tensor<2x3xf32>, tensor<2xi1>) -> tensor<?x?xf32>
  return
}

// -----

func.func @resize_negative(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.resize' op sizes expected no negative number, got [2, -3]}}
  %0 = "migraphx.resize"(%a) {sizes = array<i64: 2, -3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @roialign_of_integers(%a: tensor<1x2x4x4xi32>, %b: tensor<3x4xi32>, %c: tensor<3xi64>) {
  // expected-error @+1 {{'migraphx.roialign' op input expected a float type, got i32}}
  %0 = "migraphx.roialign"(%a, %b, %c) : (tensor<1x2x4x4xi32>, tensor<3x4xi32>, tensor<3xi64>) -> tensor<3x2x1x1xi32>
  return
}

// -----

func.func @roialign_ratio(%a: tensor<1x2x4x4xf32>, %b: tensor<3x4xf32>, %c: tensor<3xi64>) {
  // expected-error @+1 {{'migraphx.roialign' op sampling_ratio expected at least 0, got -1}}
  %0 = "migraphx.roialign"(%a, %b, %c) {sampling_ratio = -1 : i64} : (tensor<1x2x4x4xf32>, tensor<3x4xf32>, tensor<3xi64>) -> tensor<3x2x1x1xf32>
  return
}
