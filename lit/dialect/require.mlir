// RUN: mgx-opt %s | filecheck %s

// CHECK-LABEL: func.func @require
// CHECK: "migraphx.require"(%arg0, %arg1) {expected = "extents"} : (tensor<2xi64>, tensor<2xi1>) -> tensor<2xi64>
func.func @require(%a: tensor<2xi64>, %b: tensor<2xi1>) -> tensor<2xi64> {
  %0 = "migraphx.require"(%a, %b) {expected = "extents"} : (tensor<2xi64>, tensor<2xi1>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}
