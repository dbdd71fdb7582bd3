// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @require_numbers(%a: tensor<2xi64>) {
  // expected-error @+1 {{'migraphx.require' op condition expected type i1, got i64}}
  %0 = "migraphx.require"(%a, %a) {expected = "extents"} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @require_dynamic(%a: tensor<2xi64>, %b: tensor<?xi1>) {
  // expected-error @+1 {{'migraphx.require' op condition expected static dims, got tensor<?xi1>}}
  %0 = "migraphx.require"(%a, %b) {expected = "extents"} : (tensor<2xi64>, tensor<?xi1>) -> tensor<2xi64>
  return
}
