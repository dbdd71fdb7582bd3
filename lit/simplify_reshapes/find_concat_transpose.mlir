// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @alike
// CHECK-NEXT: %[[C:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 0 : i64}
// CHECK-NEXT: "migraphx.transpose"(%[[C]]) {permutation = array<i64: 1, 0>}
// CHECK-NEXT: return
func.func @alike(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) -> tensor<3x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.transpose"(%y) {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = -1 : i64} : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<3x6xf32>
  return %2 : tensor<3x6xf32>
}

// -----

// Near misses: another permutation, an operand that is not transposed, one that is used again.
// CHECK-LABEL: @stay
// CHECK-NOT: "migraphx.concat"(%arg0
// CHECK: return
func.func @stay(%x: tensor<2x3x2xf32>, %y: tensor<2x3x3xf32>, %z: tensor<3x2x2xf32>) -> (tensor<3x2x5xf32>, tensor<3x2x4xf32>, tensor<6x2x2xf32>) {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x2xf32>) -> tensor<3x2x2xf32>
  %1 = "migraphx.transpose"(%y) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x3xf32>) -> tensor<3x2x3xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 2 : i64} : (tensor<3x2x2xf32>, tensor<3x2x3xf32>) -> tensor<3x2x5xf32>
  %3 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x2xf32>) -> tensor<3x2x2xf32>
  %4 = "migraphx.concat"(%3, %z) {axis = 2 : i64} : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
  %5 = "migraphx.concat"(%0, %0) {axis = 0 : i64} : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<6x2x2xf32>
  return %2, %4, %5 : tensor<3x2x5xf32>, tensor<3x2x4xf32>, tensor<6x2x2xf32>
}
