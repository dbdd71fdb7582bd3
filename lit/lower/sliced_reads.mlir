// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --split-input-file | filecheck %s

// Elements at computed indices are read from the tensor that the slice is of (hazard 41).
// CHECK-LABEL: @main(
// CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %c9
// CHECK: tensor.extract %arg0[%{{.*}}, %[[ROW]], %{{.*}}] : tensor<8x15x64xf32>
func.func @columns(%x: tensor<8x15x64xf32>, %i: tensor<16xi64>) -> tensor<8x3x16xf32> {
  %s = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 9>, ends = array<i64: 12>} : (tensor<8x15x64xf32>) -> tensor<8x3x64xf32>
  %y = "migraphx.gather"(%s, %i) {axis = 2 : i64} : (tensor<8x3x64xf32>, tensor<16xi64>) -> tensor<8x3x16xf32>
  return %y : tensor<8x3x16xf32>
}

// -----

// Rows that lie side by side are read from the slice.
// CHECK-LABEL: @main(
// CHECK: %[[S:.*]] = tensor.extract_slice %arg0
// CHECK: tensor.extract %[[S]][
func.func @one_piece(%x: tensor<15x3x64xf32>, %i: tensor<16xi64>) -> tensor<8x3x16xf32> {
  %s = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 7>, ends = array<i64: 15>} : (tensor<15x3x64xf32>) -> tensor<8x3x64xf32>
  %y = "migraphx.gather"(%s, %i) {axis = 2 : i64} : (tensor<8x3x64xf32>, tensor<16xi64>) -> tensor<8x3x16xf32>
  return %y : tensor<8x3x16xf32>
}

// -----

// A reshape of a slice: the number of an element gives its index in the slice.
// CHECK-LABEL: @main(
// CHECK: arith.divui
// CHECK: tensor.extract %arg0[%{{.*}}, %{{.*}}, %{{.*}}] : tensor<8x15x64xf32>
func.func @reshaped(%x: tensor<8x15x64xf32>, %i: tensor<16xi64>) -> tensor<24x16xf32> {
  %s = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 9>, ends = array<i64: 12>} : (tensor<8x15x64xf32>) -> tensor<8x3x64xf32>
  %r = "migraphx.reshape"(%s) {dims = array<i64: 24, 64>} : (tensor<8x3x64xf32>) -> tensor<24x64xf32>
  %y = "migraphx.gather"(%r, %i) {axis = 1 : i64} : (tensor<24x64xf32>, tensor<16xi64>) -> tensor<24x16xf32>
  return %y : tensor<24x16xf32>
}
