// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @known
// CHECK-NEXT: "migraphx.literal"() {value = dense<[3, 4]> : tensor<2xi64>}
// CHECK-NEXT: return
func.func @known(%x: tensor<?x3x4xf32>) -> tensor<2xi64> {
  %0 = "migraphx.dimensions_of"(%x) {start = 1 : i64, end = 3 : i64} : (tensor<?x3x4xf32>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----

// A near miss: one of them is known at run time only.
// CHECK-LABEL: @open
// CHECK-NEXT: "migraphx.dimensions_of"
func.func @open(%x: tensor<?x3x4xf32>) -> tensor<2xi64> {
  %0 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 2 : i64} : (tensor<?x3x4xf32>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}
