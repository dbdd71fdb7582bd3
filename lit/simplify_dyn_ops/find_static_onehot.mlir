// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK: "migraphx.onehot"(%arg0, %arg1) {axis = -1 : i64, depth = 4 : i64{{.*}}} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
// CHECK: return
func.func @constant(%i: tensor<3xi64>, %v: tensor<2xf32>) -> tensor<3x?xf32> {
  %d = "migraphx.literal"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
  %0 = "migraphx.onehot"(%i, %d, %v) {axis = -1 : i64} : (tensor<3xi64>, tensor<i64>, tensor<2xf32>) -> tensor<3x?xf32>
  return %0 : tensor<3x?xf32>
}

// -----

// A near miss: a depth that is known at run time only.
// CHECK-LABEL: @run_time
// CHECK: "migraphx.onehot"(%arg0, %{{.*}}, %arg1)
func.func @run_time(%i: tensor<3xi64>, %v: tensor<2xf32>, %z: tensor<?xf32>) -> tensor<3x?xf32> {
  %d = "migraphx.dimensions_of"(%z) {start = 0 : i64, end = 1 : i64} : (tensor<?xf32>) -> tensor<1xi64>
  %0 = "migraphx.onehot"(%i, %d, %v) {axis = -1 : i64} : (tensor<3xi64>, tensor<1xi64>, tensor<2xf32>) -> tensor<3x?xf32>
  return %0 : tensor<3x?xf32>
}
