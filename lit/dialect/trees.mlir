// Decision trees: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @tree_leaves_0(
// CHECK: %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) {depth = 3 : i64, mode = "le"} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
func.func @tree_leaves_0(%arg0: tensor<5x4xf32>, %arg1: tensor<2xi32>, %arg2: tensor<7xi32>, %arg3: tensor<7xf32>, %arg4: tensor<7xi32>, %arg5: tensor<7xi32>) -> (tensor<5x2xi64>) {
  %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) {depth = 3 : i64, mode = "le"} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
  return %0 : tensor<5x2xi64>
}

// -----

// CHECK-LABEL: @tree_leaves_1(
// CHECK: %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6) {depth = 2 : i64, mode = "gt"} : (tensor<?x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>, tensor<7xi1>) -> tensor<?x2xi64>
func.func @tree_leaves_1(%arg0: tensor<?x4xf32>, %arg1: tensor<2xi32>, %arg2: tensor<7xi32>, %arg3: tensor<7xf32>, %arg4: tensor<7xi32>, %arg5: tensor<7xi32>, %arg6: tensor<7xi1>) -> (tensor<?x2xi64>) {
  %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6) {depth = 2 : i64, mode = "gt"} : (tensor<?x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>, tensor<7xi1>) -> tensor<?x2xi64>
  return %0 : tensor<?x2xi64>
}
