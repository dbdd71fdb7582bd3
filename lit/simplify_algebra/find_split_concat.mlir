// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @whole
// CHECK-NEXT: return %arg0
func.func @whole(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 1>, ends = array<i64: 4>} : (tensor<2x4xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

// Two of three follow each other, beside a value of another kind.
// CHECK-LABEL: @run
// CHECK: %[[A:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: 4>, starts = array<i64: 2>}
// CHECK: %[[B:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: 3>, starts = array<i64: 1>}
// CHECK-NEXT: "migraphx.concat"(%arg1, %[[B]], %[[A]]) {axis = 0
func.func @run(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<6xf32> {
  %a = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<4xf32>) -> tensor<2xf32>
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<4xf32>) -> tensor<1xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<4xf32>) -> tensor<1xf32>
  %2 = "migraphx.concat"(%y, %0, %1, %a) {axis = 0 : i64} : (tensor<2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

// -----

// Near misses: the other order (a rotation), slices along another axis, of two tensors.
// CHECK-LABEL: @rotated
// CHECK: migraphx.concat
func.func @rotated(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<4xf32>) -> tensor<2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<4xf32>) -> tensor<2xf32>
  %2 = "migraphx.concat"(%1, %0) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @across
// CHECK: migraphx.concat
func.func @across(%x: tensor<2x4xf32>) -> tensor<4x2xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: @two
// CHECK: migraphx.concat
func.func @two(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<4xf32>) -> tensor<2xf32>
  %1 = "migraphx.slice"(%y) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<4xf32>) -> tensor<2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
