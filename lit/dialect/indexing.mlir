// Gathers and index ops: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @gather_0(
// CHECK: %0 = "migraphx.gather"(%arg0, %arg1) {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3x?xi64>) -> tensor<2x3x?xf32>
func.func @gather_0(%arg0: tensor<2x5xf32>, %arg1: tensor<3x?xi64>) -> (tensor<2x3x?xf32>) {
  %0 = "migraphx.gather"(%arg0, %arg1) {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3x?xi64>) -> tensor<2x3x?xf32>
  return %0 : tensor<2x3x?xf32>
}

// -----

// CHECK-LABEL: @gather_1(
// CHECK: %0 = "migraphx.gather"(%arg0, %arg1) {axis = 0 : i64} : (tensor<2x5xf32>, tensor<i32>) -> tensor<5xf32>
func.func @gather_1(%arg0: tensor<2x5xf32>, %arg1: tensor<i32>) -> (tensor<5xf32>) {
  %0 = "migraphx.gather"(%arg0, %arg1) {axis = 0 : i64} : (tensor<2x5xf32>, tensor<i32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// CHECK-LABEL: @gathernd_0(
// CHECK: %0 = "migraphx.gathernd"(%arg0, %arg1) {batch_dims = 1 : i64} : (tensor<?x5x3xf32>, tensor<4x2x1xi64>) -> tensor<4x2x3xf32>
func.func @gathernd_0(%arg0: tensor<?x5x3xf32>, %arg1: tensor<4x2x1xi64>) -> (tensor<4x2x3xf32>) {
  %0 = "migraphx.gathernd"(%arg0, %arg1) {batch_dims = 1 : i64} : (tensor<?x5x3xf32>, tensor<4x2x1xi64>) -> tensor<4x2x3xf32>
  return %0 : tensor<4x2x3xf32>
}

// -----

// CHECK-LABEL: @onehot_0(
// CHECK: %0 = "migraphx.onehot"(%arg0, %arg1) {axis = 0 : i64, depth = 4 : i64} : (tensor<3xi64>, tensor<2xf16>) -> tensor<4x3xf16>
func.func @onehot_0(%arg0: tensor<3xi64>, %arg1: tensor<2xf16>) -> (tensor<4x3xf16>) {
  %0 = "migraphx.onehot"(%arg0, %arg1) {axis = 0 : i64, depth = 4 : i64} : (tensor<3xi64>, tensor<2xf16>) -> tensor<4x3xf16>
  return %0 : tensor<4x3xf16>
}

// -----

// CHECK-LABEL: @onehot_1(
// CHECK: %0 = "migraphx.onehot"(%arg0, %arg1, %arg2) {axis = -1 : i64} : (tensor<3xi64>, tensor<i64>, tensor<2xf16>) -> tensor<3x?xf16>
func.func @onehot_1(%arg0: tensor<3xi64>, %arg1: tensor<i64>, %arg2: tensor<2xf16>) -> (tensor<3x?xf16>) {
  %0 = "migraphx.onehot"(%arg0, %arg1, %arg2) {axis = -1 : i64} : (tensor<3xi64>, tensor<i64>, tensor<2xf16>) -> tensor<3x?xf16>
  return %0 : tensor<3x?xf16>
}

// -----

// CHECK-LABEL: @nonzero_0(
// CHECK: %0 = "migraphx.nonzero"(%arg0) {padded = false} : (tensor<2x3xi1>) -> tensor<2x?xi64>
func.func @nonzero_0(%arg0: tensor<2x3xi1>) -> (tensor<2x?xi64>) {
  %0 = "migraphx.nonzero"(%arg0) {padded = false} : (tensor<2x3xi1>) -> tensor<2x?xi64>
  return %0 : tensor<2x?xi64>
}

// -----

// CHECK-LABEL: @nonzero_1(
// CHECK: %0 = "migraphx.nonzero"(%arg0) {padded = true} : (tensor<2x3xi1>) -> tensor<2x6xi64>
func.func @nonzero_1(%arg0: tensor<2x3xi1>) -> (tensor<2x6xi64>) {
  %0 = "migraphx.nonzero"(%arg0) {padded = true} : (tensor<2x3xi1>) -> tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}

// -----

// CHECK-LABEL: @nonmaxsuppression_0(
// CHECK: %0 = "migraphx.nonmaxsuppression"(%arg0, %arg1, %arg2) {center_point_box = false, padded = false, use_dyn_output = false} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<i64>) -> tensor<?x3xi64>
func.func @nonmaxsuppression_0(%arg0: tensor<1x6x4xf32>, %arg1: tensor<1x2x6xf32>, %arg2: tensor<i64>) -> (tensor<?x3xi64>) {
  %0 = "migraphx.nonmaxsuppression"(%arg0, %arg1, %arg2) {center_point_box = false, padded = false, use_dyn_output = false} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<i64>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// -----

// CHECK-LABEL: @nonmaxsuppression_1(
// CHECK: %0 = "migraphx.nonmaxsuppression"(%arg0, %arg1) {center_point_box = false, padded = true, use_dyn_output = false} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>) -> tensor<12x3xi64>
func.func @nonmaxsuppression_1(%arg0: tensor<1x6x4xf32>, %arg1: tensor<1x2x6xf32>) -> (tensor<12x3xi64>) {
  %0 = "migraphx.nonmaxsuppression"(%arg0, %arg1) {center_point_box = false, padded = true, use_dyn_output = false} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>) -> tensor<12x3xi64>
  return %0 : tensor<12x3xi64>
}

// -----

// CHECK-LABEL: @unique_0(
// CHECK: %0:4 = "migraphx.unique"(%arg0) {axis = 0 : i64, sorted = true} : (tensor<2x?xf32>) -> (tensor<?x?xf32>, tensor<?xi64>, tensor<2xi64>, tensor<?xi64>)
func.func @unique_0(%arg0: tensor<2x?xf32>) -> (tensor<?x?xf32>, tensor<?xi64>, tensor<2xi64>, tensor<?xi64>) {
  %0:4 = "migraphx.unique"(%arg0) {axis = 0 : i64, sorted = true} : (tensor<2x?xf32>) -> (tensor<?x?xf32>, tensor<?xi64>, tensor<2xi64>, tensor<?xi64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<?x?xf32>, tensor<?xi64>, tensor<2xi64>, tensor<?xi64>
}

// -----

// CHECK-LABEL: @unique_1(
// CHECK: %0:4 = "migraphx.unique"(%arg0) {sorted = false} : (tensor<6xi64>) -> (tensor<?xi64>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>)
func.func @unique_1(%arg0: tensor<6xi64>) -> (tensor<?xi64>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>) {
  %0:4 = "migraphx.unique"(%arg0) {sorted = false} : (tensor<6xi64>) -> (tensor<?xi64>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<?xi64>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>
}
