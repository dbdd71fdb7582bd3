// RUN: mgx-opt --mgx-lower-to-linalg=arch=x86-64 --split-input-file %s | filecheck %s

// Doubling that only repeats elements is a broadcast and a reshape.
// CHECK: affine_map<(d0, d1, d2, d3) -> (d0, d2)>
// CHECK-LABEL: @main(
// CHECK-NOT: tensor.extract
// CHECK: linalg.generic
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2, 3]] : tensor<2x2x3x2xf32> into tensor<4x6xf32>
func.func @main(%x: tensor<2x3xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 2.0, 2.0>, sizes = array<i64>, nearest_mode = "floor", mode = "nearest", coordinate_transformation_mode = "asymmetric"} : (tensor<2x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Near miss: with half_pixel and floor the first element is repeated once more.
// CHECK-LABEL: @main(
// CHECK: math.floor
// CHECK: tensor.extract %arg0
func.func @main(%x: tensor<3xf32>) -> tensor<6xf32> {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 2.0>, sizes = array<i64>, nearest_mode = "floor", mode = "nearest", coordinate_transformation_mode = "half_pixel"} : (tensor<3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// Linear: tables of places and weights, two taps along the one axis that changes.
// CHECK-LABEL: @main(
// CHECK: tensor.empty() : tensor<6xf32>
// CHECK: tensor.empty() : tensor<2x6xi64>
// CHECK: tensor.empty() : tensor<2x6xf32>
// CHECK: tensor.empty() : tensor<4x6xf32>
// CHECK: tensor.extract %arg0
// CHECK: tensor.extract %arg0
// CHECK-NOT: tensor.extract %arg0
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 1.0, 2.0>, sizes = array<i64>, nearest_mode = "floor", mode = "linear", coordinate_transformation_mode = "half_pixel"} : (tensor<4x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
