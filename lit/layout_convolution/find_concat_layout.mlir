// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @channels
// CHECK-NEXT: %[[Y:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 3 : i64} : (tensor<1x4x5x2xf32>, tensor<1x4x5x3xf32>) -> tensor<1x4x5x5xf32>
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @channels(%x: tensor<1x4x5x2xf32>, %y: tensor<1x4x5x3xf32>) -> tensor<1x5x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.transpose"(%y) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<1x2x4x5xf32>, tensor<1x3x4x5xf32>) -> tensor<1x5x4x5xf32>
  return %2 : tensor<1x5x4x5xf32>
}

// -----

// CHECK-LABEL: @spatial
// CHECK-NEXT: "migraphx.concat"(%arg0, %arg0) {axis = 2 : i64} : (tensor<1x4x5x2xf32>, tensor<1x4x5x2xf32>) -> tensor<1x4x10x2xf32>
func.func @spatial(%x: tensor<1x4x5x2xf32>) -> tensor<1x2x4x10xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %2 = "migraphx.concat"(%0, %0) {axis = -1 : i64} : (tensor<1x2x4x5xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x4x10xf32>
  return %2 : tensor<1x2x4x10xf32>
}

// -----

// Near miss: one input is not transposed.
// CHECK-LABEL: @mixed
// CHECK: migraphx.transpose
// CHECK-NEXT: "migraphx.concat"({{.*}}, %arg1) {axis = 1 : i64}
func.func @mixed(%x: tensor<1x4x5x2xf32>, %y: tensor<1x3x4x5xf32>) -> tensor<1x5x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %2 = "migraphx.concat"(%0, %y) {axis = 1 : i64} : (tensor<1x2x4x5xf32>, tensor<1x3x4x5xf32>) -> tensor<1x5x4x5xf32>
  return %2 : tensor<1x5x4x5xf32>
}
