// RUN: mgx-opt --mgx-lower-to-linalg %s | filecheck %s

// Each element of the result is a walk from a root, which ends at a leaf or after `depth` steps.
// CHECK-LABEL: @main(
// CHECK: linalg.generic
// CHECK: scf.while
// CHECK: arith.cmpi slt, %{{.*}}, %c3
// CHECK: scf.condition
// CHECK: arith.cmpf ole
// CHECK: tensor<?x2xi64>
func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<2xi32>, %arg2: tensor<7xi32>, %arg3: tensor<7xf32>, %arg4: tensor<7xi32>, %arg5: tensor<7xi32>) -> tensor<?x2xi64> {
  %0 = "migraphx.tree_leaves"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) {depth = 3 : i64, mode = "le"} : (tensor<?x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>) -> tensor<?x2xi64>
  return %0 : tensor<?x2xi64>
}
