// RUN: mgx-opt %s --mgx-eliminate-identity --split-input-file | filecheck %s

// CHECK-LABEL: @chain
// CHECK-NEXT: return %arg0
func.func @chain(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.identity"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = "migraphx.identity"(%0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: @others
// CHECK-NEXT: migraphx.neg
func.func @others(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
