// RUN: mgx-opt --mgx-lower-to-linalg %s --split-input-file | filecheck %s

// Each element of the result is a walk from a root, which ends at a leaf or after `depth` steps.
// CHECK-LABEL: @main(
// CHECK: linalg.generic
// CHECK: scf.while
// CHECK: arith.cmpi slt, %{{.*}}, %c3
// CHECK: scf.condition
// CHECK: arith.cmpf ole
// CHECK-NOT: arith.cmpf uno
// CHECK: tensor<?x2xi64>
func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<2xi32>, %arg2: tensor<7x3xi32>, %arg3: tensor<7xf32>) -> tensor<?x2xi64> {
  %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3) {depth = 3 : i64} : (tensor<?x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7xf32>) -> tensor<?x2xi64>
  return %0 : tensor<?x2xi64>
}

// -----

// A sum over trees, whose nodes may take a NaN for a yes: a kernel of ours, in which a group of two
// trees is walked by row after row.
// CHECK-LABEL: @main(
// CHECK: flow.dispatch
// CHECK: scf.for
// CHECK: scf.while
// CHECK-COUNT-2: arith.cmpf ole
// CHECK: scf.yield
// CHECK-COUNT-2: arith.addf %{{.*}} : vector<2xf32>
func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<3x2xi32>, %arg2: tensor<7x4xi32>, %arg3: tensor<7xf32>, %arg4: tensor<7x2xf32>) -> tensor<?x6xf32> {
  %0 = "migraphx.tree_sums"(%arg0, %arg1, %arg2, %arg3, %arg4) {depth = 3 : i64} : (tensor<?x4xf32>, tensor<3x2xi32>, tensor<7x4xi32>, tensor<7xf32>, tensor<7x2xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}
