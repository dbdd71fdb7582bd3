// Scatters: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @scatter_none_0(
// CHECK: %0 = "migraphx.scatter_none"(%arg0, %arg1, %arg2) {axis = 0 : i64, skip_out_of_bounds = false} : (tensor<?x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<?x3xf32>
func.func @scatter_none_0(%arg0: tensor<?x3xf32>, %arg1: tensor<2x3xi64>, %arg2: tensor<2x3xf32>) -> (tensor<?x3xf32>) {
  %0 = "migraphx.scatter_none"(%arg0, %arg1, %arg2) {axis = 0 : i64, skip_out_of_bounds = false} : (tensor<?x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: @scatter_none_1(
// CHECK: %0 = "migraphx.scatter_none"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
func.func @scatter_none_1(%arg0: tensor<4x?xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<2x3xf32>) -> (tensor<4x?xf32>) {
  %0 = "migraphx.scatter_none"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @scatter_add_0(
// CHECK: %0 = "migraphx.scatter_add"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
func.func @scatter_add_0(%arg0: tensor<4x?xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<2x3xf32>) -> (tensor<4x?xf32>) {
  %0 = "migraphx.scatter_add"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @scatter_mul_0(
// CHECK: %0 = "migraphx.scatter_mul"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
func.func @scatter_mul_0(%arg0: tensor<4x?xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<2x3xf32>) -> (tensor<4x?xf32>) {
  %0 = "migraphx.scatter_mul"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @scatter_min_0(
// CHECK: %0 = "migraphx.scatter_min"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
func.func @scatter_min_0(%arg0: tensor<4x?xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<2x3xf32>) -> (tensor<4x?xf32>) {
  %0 = "migraphx.scatter_min"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @scatter_max_0(
// CHECK: %0 = "migraphx.scatter_max"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
func.func @scatter_max_0(%arg0: tensor<4x?xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<2x3xf32>) -> (tensor<4x?xf32>) {
  %0 = "migraphx.scatter_max"(%arg0, %arg1, %arg2) {axis = 1 : i64, skip_out_of_bounds = true} : (tensor<4x?xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @scatternd_none_0(
// CHECK: %0 = "migraphx.scatternd_none"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
func.func @scatternd_none_0(%arg0: tensor<4x?xi64>, %arg1: tensor<2x?x1xi64>, %arg2: tensor<2x?x?xi64>) -> (tensor<4x?xi64>) {
  %0 = "migraphx.scatternd_none"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
  return %0 : tensor<4x?xi64>
}

// -----

// CHECK-LABEL: @scatternd_add_0(
// CHECK: %0 = "migraphx.scatternd_add"(%arg0, %arg1, %arg2) : (tensor<4x3xf32>, tensor<?x1xi64>, tensor<?x3xf32>) -> tensor<4x3xf32>
func.func @scatternd_add_0(%arg0: tensor<4x3xf32>, %arg1: tensor<?x1xi64>, %arg2: tensor<?x3xf32>) -> (tensor<4x3xf32>) {
  %0 = "migraphx.scatternd_add"(%arg0, %arg1, %arg2) : (tensor<4x3xf32>, tensor<?x1xi64>, tensor<?x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: @scatternd_add_1(
// CHECK: %0 = "migraphx.scatternd_add"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
func.func @scatternd_add_1(%arg0: tensor<4x?xi64>, %arg1: tensor<2x?x1xi64>, %arg2: tensor<2x?x?xi64>) -> (tensor<4x?xi64>) {
  %0 = "migraphx.scatternd_add"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
  return %0 : tensor<4x?xi64>
}

// -----

// CHECK-LABEL: @scatternd_mul_0(
// CHECK: %0 = "migraphx.scatternd_mul"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
func.func @scatternd_mul_0(%arg0: tensor<4x?xi64>, %arg1: tensor<2x?x1xi64>, %arg2: tensor<2x?x?xi64>) -> (tensor<4x?xi64>) {
  %0 = "migraphx.scatternd_mul"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
  return %0 : tensor<4x?xi64>
}

// -----

// CHECK-LABEL: @scatternd_min_0(
// CHECK: %0 = "migraphx.scatternd_min"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
func.func @scatternd_min_0(%arg0: tensor<4x?xi64>, %arg1: tensor<2x?x1xi64>, %arg2: tensor<2x?x?xi64>) -> (tensor<4x?xi64>) {
  %0 = "migraphx.scatternd_min"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
  return %0 : tensor<4x?xi64>
}

// -----

// CHECK-LABEL: @scatternd_max_0(
// CHECK: %0 = "migraphx.scatternd_max"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
func.func @scatternd_max_0(%arg0: tensor<4x?xi64>, %arg1: tensor<2x?x1xi64>, %arg2: tensor<2x?x?xi64>) -> (tensor<4x?xi64>) {
  %0 = "migraphx.scatternd_max"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
  return %0 : tensor<4x?xi64>
}
