// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @channels
// CHECK-NEXT: %[[C:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 3 : i64}
// CHECK-NEXT: "migraphx.transpose"(%[[C]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @channels(%x: tensor<1x4x5x2xf32>, %y: tensor<1x4x5x3xf32>) -> tensor<1x5x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.transpose"(%y) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<1x2x4x5xf32>, tensor<1x3x4x5xf32>) -> tensor<1x5x4x5xf32>
  return %2 : tensor<1x5x4x5xf32>
}

// -----

// CHECK-LABEL: @mixed
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0)
// CHECK-NEXT: "migraphx.concat"(%[[T]], %arg1) {axis = 1 : i64}
func.func @mixed(%x: tensor<1x4x5x2xf32>, %y: tensor<1x3x4x5xf32>) -> tensor<1x5x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %2 = "migraphx.concat"(%0, %y) {axis = 1 : i64} : (tensor<1x2x4x5xf32>, tensor<1x3x4x5xf32>) -> tensor<1x5x4x5xf32>
  return %2 : tensor<1x5x4x5xf32>
}
