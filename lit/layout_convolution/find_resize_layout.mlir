// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @sizes
// CHECK-NEXT: %[[Y:.*]] = "migraphx.resize"(%arg0) {{.*}}mode = "linear"{{.*}}sizes = array<i64: 1, 8, 10, 3>} : (tensor<1x4x5x3xf32>) -> tensor<1x8x10x3xf32>
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @sizes(%x: tensor<1x4x5x3xf32>) -> tensor<1x3x8x10xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = "migraphx.resize"(%0) {mode = "linear", sizes = array<i64: 1, 3, 8, 10>} : (tensor<1x3x4x5xf32>) -> tensor<1x3x8x10xf32>
  return %1 : tensor<1x3x8x10xf32>
}

// -----

// CHECK-LABEL: @scales
// CHECK-NEXT: "migraphx.resize"(%arg0) {{.*}}coordinate_transformation_mode = "align_corners"{{.*}}cubic_coeff_a = -5.000000e-01{{.*}}exclude_outside = true{{.*}}mode = "cubic"{{.*}}scales = array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00, 1.000000e+00>
func.func @scales(%x: tensor<1x4x5x3xf32>) -> tensor<1x3x8x15xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = "migraphx.resize"(%0) {mode = "cubic", scales = array<f64: 1.0, 1.0, 2.0, 3.0>, coordinate_transformation_mode = "align_corners", cubic_coeff_a = -0.5, exclude_outside = true} : (tensor<1x3x4x5xf32>) -> tensor<1x3x8x15xf32>
  return %1 : tensor<1x3x8x15xf32>
}

// -----

// A crop's starts and ends are those of all axes.
// CHECK-LABEL: @crop
// CHECK-NEXT: "migraphx.resize"(%arg0) {{.*}}extrapolation_value = 2.000000e+00{{.*}}roi = array<f64: 0.000000e+00, 1.000000e-01, 2.000000e-01, 0.000000e+00, 1.000000e+00, 8.000000e-01, 9.000000e-01, 1.000000e+00>
func.func @crop(%x: tensor<1x4x5x3xf32>) -> tensor<1x3x8x15xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = "migraphx.resize"(%0) {mode = "linear", sizes = array<i64: 1, 3, 8, 15>, coordinate_transformation_mode = "tf_crop_and_resize", roi = array<f64: 0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 0.8, 0.9>, extrapolation_value = 2.0} : (tensor<1x3x4x5xf32>) -> tensor<1x3x8x15xf32>
  return %1 : tensor<1x3x8x15xf32>
}

// -----

// Near miss: the run has the sizes.
// CHECK-LABEL: @at_run_time
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0)
// CHECK-NEXT: "migraphx.resize"(%[[T]], %arg1)
func.func @at_run_time(%x: tensor<1x4x5x3xf32>, %sizes: tensor<4xi64>) -> tensor<?x?x?x?xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = "migraphx.resize"(%0, %sizes) {mode = "linear"} : (tensor<1x3x4x5xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>
  return %1 : tensor<?x?x?x?xf32>
}
