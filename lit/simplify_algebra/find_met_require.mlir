// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @met
// CHECK-NEXT: return %arg0
func.func @met(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c = "migraphx.literal"() {value = dense<true> : tensor<2xi1>} : () -> tensor<2xi1>
  %0 = "migraphx.require"(%x, %c) {expected = "a size"} : (tensor<?x3xf32>, tensor<2xi1>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: @unknown
// CHECK-NEXT: migraphx.require
func.func @unknown(%x: tensor<?x3xf32>, %c: tensor<i1>) -> tensor<?x3xf32> {
  %0 = "migraphx.require"(%x, %c) {expected = "a size"} : (tensor<?x3xf32>, tensor<i1>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// One element that does not hold is an error when the code runs.
// CHECK-LABEL: @not_met
// CHECK: migraphx.require
func.func @not_met(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = "migraphx.literal"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
  %0 = "migraphx.require"(%x, %c) {expected = "a size"} : (tensor<3xf32>, tensor<2xi1>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
