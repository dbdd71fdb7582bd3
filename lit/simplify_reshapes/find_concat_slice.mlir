// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @whole
// CHECK-NEXT: return %arg1
func.func @whole(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = "migraphx.concat"(%x, %y) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1>, starts = array<i64: 3>, ends = array<i64: 7>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x7xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @part
// CHECK-NEXT: "migraphx.slice"(%arg1) {axes = array<i64: 0, 1>, ends = array<i64: 1, 3>, {{.*}}starts = array<i64: 0, 1>}
// CHECK-NEXT: return
func.func @part(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<1x2xf32> {
  %0 = "migraphx.concat"(%x, %y) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 1, 0>, starts = array<i64: 4, 0>, ends = array<i64: 6, 1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x7xf32>) -> tensor<1x2xf32>
  return %1 : tensor<1x2xf32>
}

// -----

// CHECK-LABEL: @two_of_three
// CHECK-NEXT: %[[C:.*]] = "migraphx.concat"(%arg1, %arg2)
// CHECK-NEXT: "migraphx.slice"(%[[C]]) {axes = array<i64: 0>, ends = array<i64: 4>, {{.*}}starts = array<i64: 1>}
func.func @two_of_three(%x: tensor<2xf32>, %y: tensor<3xf32>, %z: tensor<4xf32>) -> tensor<3xf32> {
  %0 = "migraphx.concat"(%x, %y, %z) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<9xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 0>, starts = array<i64: 3>, ends = array<i64: 6>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<9xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// It takes from every operand.
// CHECK-LABEL: @all
// CHECK-NEXT: migraphx.concat
// CHECK-NEXT: migraphx.slice
func.func @all(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  %0 = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = "migraphx.slice"(%0) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 3>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<5xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
