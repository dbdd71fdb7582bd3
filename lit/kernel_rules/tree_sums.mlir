// The rule `tree_sums` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::tree_sums: tree_sums (
func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<3x2xi32>, %arg2: tensor<7x4xi32>, %arg3: tensor<7xf32>, %arg4: tensor<7x2xf32>) -> tensor<?x6xf32> {
  %0 = "migraphx.tree_sums"(%arg0, %arg1, %arg2, %arg3, %arg4) {depth = 3 : i64} : (tensor<?x4xf32>, tensor<3x2xi32>, tensor<7x4xi32>, tensor<7xf32>, tensor<7x2xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}
