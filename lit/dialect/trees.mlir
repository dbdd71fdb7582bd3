// Decision trees: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @tree_leaves_0(
// CHECK: %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3) {depth = 3 : i64} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7xf32>) -> tensor<5x2xi64>
func.func @tree_leaves_0(%arg0: tensor<5x4xf32>, %arg1: tensor<2xi32>, %arg2: tensor<7x3xi32>, %arg3: tensor<7xf32>) -> (tensor<5x2xi64>) {
  %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3) {depth = 3 : i64} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7xf32>) -> tensor<5x2xi64>
  return %0 : tensor<5x2xi64>
}

// -----

// CHECK-LABEL: @tree_leaves_1(
// CHECK: %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3) {depth = 2 : i64} : (tensor<?x4xf32>, tensor<2xi32>, tensor<7x4xi32>, tensor<7xf32>) -> tensor<?x2xi64>
func.func @tree_leaves_1(%arg0: tensor<?x4xf32>, %arg1: tensor<2xi32>, %arg2: tensor<7x4xi32>, %arg3: tensor<7xf32>) -> (tensor<?x2xi64>) {
  %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3) {depth = 2 : i64} : (tensor<?x4xf32>, tensor<2xi32>, tensor<7x4xi32>, tensor<7xf32>) -> tensor<?x2xi64>
  return %0 : tensor<?x2xi64>
}

// -----

// CHECK-LABEL: @tree_sums_0(
// CHECK: %0 = "migraphx.tree_sums"(%arg0, %arg1, %arg2, %arg3, %arg4) {depth = 3 : i64} : (tensor<5x4xf32>, tensor<1x2xi32>, tensor<7x3xi32>, tensor<7xf32>, tensor<7x2xf32>) -> tensor<5x2xf32>
func.func @tree_sums_0(%arg0: tensor<5x4xf32>, %arg1: tensor<1x2xi32>, %arg2: tensor<7x3xi32>, %arg3: tensor<7xf32>, %arg4: tensor<7x2xf32>) -> (tensor<5x2xf32>) {
  %0 = "migraphx.tree_sums"(%arg0, %arg1, %arg2, %arg3, %arg4) {depth = 3 : i64} : (tensor<5x4xf32>, tensor<1x2xi32>, tensor<7x3xi32>, tensor<7xf32>, tensor<7x2xf32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}

// -----

// CHECK-LABEL: @tree_sums_1(
// CHECK: %0 = "migraphx.tree_sums"(%arg0, %arg1, %arg2, %arg3, %arg4) {depth = 2 : i64} : (tensor<?x4xf64>, tensor<3x2xi32>, tensor<7x4xi32>, tensor<7xf64>, tensor<7x1xf64>) -> tensor<?x3xf64>
func.func @tree_sums_1(%arg0: tensor<?x4xf64>, %arg1: tensor<3x2xi32>, %arg2: tensor<7x4xi32>, %arg3: tensor<7xf64>, %arg4: tensor<7x1xf64>) -> (tensor<?x3xf64>) {
  %0 = "migraphx.tree_sums"(%arg0, %arg1, %arg2, %arg3, %arg4) {depth = 2 : i64} : (tensor<?x4xf64>, tensor<3x2xi32>, tensor<7x4xi32>, tensor<7xf64>, tensor<7x1xf64>) -> tensor<?x3xf64>
  return %0 : tensor<?x3xf64>
}
