// Hazard 51: on a GPU a row of dynamic length is a slice of the flat tensor.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --split-input-file | filecheck %s

// CHECK-LABEL: @main(
// CHECK: [[FLAT:%.+]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1]] : tensor<2x?xi64> into tensor<?xi64>
// CHECK: tensor.extract_slice [[FLAT]]{{.*}} : tensor<?xi64> to tensor<?xi64>
func.func @second(%x: tensor<2x?xi64>) -> tensor<1x?xi64> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<2x?xi64>) -> tensor<1x?xi64>
  return %0 : tensor<1x?xi64>
}

// -----

// Fixed rows are slices as they are.
// CHECK-LABEL: @main(
// CHECK-NOT: tensor.collapse_shape
// CHECK: tensor.extract_slice %arg0[1, 0] [1, 8] [1, 1]
func.func @fixed(%x: tensor<2x8xi64>) -> tensor<1x8xi64> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<2x8xi64>) -> tensor<1x8xi64>
  return %0 : tensor<1x8xi64>
}
