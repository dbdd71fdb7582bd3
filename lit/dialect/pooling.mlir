// Pooling, ROI align and resize: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @pooling_0(
// CHECK: %0 = "migraphx.pooling"(%arg0) {ceil_mode = false, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 3, 3>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x3x8x?xf32>) -> tensor<1x3x3x?xf32>
func.func @pooling_0(%arg0: tensor<1x3x8x?xf32>) -> (tensor<1x3x3x?xf32>) {
  %0 = "migraphx.pooling"(%arg0) {ceil_mode = false, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 3, 3>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x3x8x?xf32>) -> tensor<1x3x3x?xf32>
  return %0 : tensor<1x3x3x?xf32>
}

// -----

// CHECK-LABEL: @pooling_1(
// CHECK: %0 = "migraphx.pooling"(%arg0) {ceil_mode = true, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 3, 3>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
func.func @pooling_1(%arg0: tensor<1x3x8x8xf32>) -> (tensor<1x3x4x4xf32>) {
  %0 = "migraphx.pooling"(%arg0) {ceil_mode = true, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 3, 3>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// -----

// CHECK-LABEL: @pooling_2(
// CHECK: %0 = "migraphx.pooling"(%arg0) {ceil_mode = true, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 2, 2>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0, 1, 1>, padding_mode = "default_", stride = array<i64: 3, 3>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x2x2xf32>
func.func @pooling_2(%arg0: tensor<1x3x4x4xf32>) -> (tensor<1x3x2x2xf32>) {
  %0 = "migraphx.pooling"(%arg0) {ceil_mode = true, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 2, 2>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0, 1, 1>, padding_mode = "default_", stride = array<i64: 3, 3>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x2x2xf32>
  return %0 : tensor<1x3x2x2xf32>
}

// -----

// CHECK-LABEL: @pooling_3(
// CHECK: %0 = "migraphx.pooling"(%arg0) {ceil_mode = false, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = true, lengths = array<i64: 1, 1>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 1, 1>} : (tensor<1x3x?x8xf32>) -> tensor<1x3x1x1xf32>
func.func @pooling_3(%arg0: tensor<1x3x?x8xf32>) -> (tensor<1x3x1x1xf32>) {
  %0 = "migraphx.pooling"(%arg0) {ceil_mode = false, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = true, lengths = array<i64: 1, 1>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 1, 1>} : (tensor<1x3x?x8xf32>) -> tensor<1x3x1x1xf32>
  return %0 : tensor<1x3x1x1xf32>
}

// -----

// CHECK-LABEL: @roialign_0(
// CHECK: %0 = "migraphx.roialign"(%arg0, %arg1, %arg2) {coordinate_transformation_mode = "half_pixel", mode = "average", output_height = 1 : i64, output_width = 2 : i64, sampling_ratio = 0 : i64, spatial_scale = 1.000000e+00 : f64} : (tensor<1x3x?x?xf32>, tensor<?x4xf32>, tensor<5xi64>) -> tensor<5x3x1x2xf32>
func.func @roialign_0(%arg0: tensor<1x3x?x?xf32>, %arg1: tensor<?x4xf32>, %arg2: tensor<5xi64>) -> (tensor<5x3x1x2xf32>) {
  %0 = "migraphx.roialign"(%arg0, %arg1, %arg2) {coordinate_transformation_mode = "half_pixel", mode = "average", output_height = 1 : i64, output_width = 2 : i64, sampling_ratio = 0 : i64, spatial_scale = 1.000000e+00 : f64} : (tensor<1x3x?x?xf32>, tensor<?x4xf32>, tensor<5xi64>) -> tensor<5x3x1x2xf32>
  return %0 : tensor<5x3x1x2xf32>
}

// -----

// CHECK-LABEL: @resize_0(
// CHECK: %0 = "migraphx.resize"(%arg0) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64: 1.000000e+00, 1.000000e+00, 2.500000e+00, 2.000000e+00>, sizes = array<i64>} : (tensor<1x3x4x?xf32>) -> tensor<1x3x10x?xf32>
func.func @resize_0(%arg0: tensor<1x3x4x?xf32>) -> (tensor<1x3x10x?xf32>) {
  %0 = "migraphx.resize"(%arg0) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64: 1.000000e+00, 1.000000e+00, 2.500000e+00, 2.000000e+00>, sizes = array<i64>} : (tensor<1x3x4x?xf32>) -> tensor<1x3x10x?xf32>
  return %0 : tensor<1x3x10x?xf32>
}

// -----

// CHECK-LABEL: @resize_1(
// CHECK: %0 = "migraphx.resize"(%arg0) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64>, sizes = array<i64: 0, 0, 7, 9>} : (tensor<1x3x4x?xf32>) -> tensor<1x3x7x9xf32>
func.func @resize_1(%arg0: tensor<1x3x4x?xf32>) -> (tensor<1x3x7x9xf32>) {
  %0 = "migraphx.resize"(%arg0) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64>, sizes = array<i64: 0, 0, 7, 9>} : (tensor<1x3x4x?xf32>) -> tensor<1x3x7x9xf32>
  return %0 : tensor<1x3x7x9xf32>
}

// -----

// CHECK-LABEL: @resize_2(
// CHECK: %0 = "migraphx.resize"(%arg0, %arg1) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64>, sizes = array<i64>} : (tensor<1x3x4x4xf32>, tensor<4xf32>) -> tensor<?x?x?x?xf32>
func.func @resize_2(%arg0: tensor<1x3x4x4xf32>, %arg1: tensor<4xf32>) -> (tensor<?x?x?x?xf32>) {
  %0 = "migraphx.resize"(%arg0, %arg1) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64>, sizes = array<i64>} : (tensor<1x3x4x4xf32>, tensor<4xf32>) -> tensor<?x?x?x?xf32>
  return %0 : tensor<?x?x?x?xf32>
}

// -----

// CHECK-LABEL: @resize_3(
// CHECK: %0 = "migraphx.resize"(%arg0) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64: 0.69999999999999996>, sizes = array<i64>} : (tensor<10xf32>) -> tensor<7xf32>
func.func @resize_3(%arg0: tensor<10xf32>) -> (tensor<7xf32>) {
  %0 = "migraphx.resize"(%arg0) {antialias = false, coordinate_transformation_mode = "half_pixel", cubic_coeff_a = -7.500000e-01 : f64, exclude_outside = false, extrapolation_value = 0.000000e+00 : f64, mode = "nearest", nearest_mode = "floor", roi = array<f64>, scales = array<f64: 0.69999999999999996>, sizes = array<i64>} : (tensor<10xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
