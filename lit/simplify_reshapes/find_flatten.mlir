// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @static
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: 2, 12>}
func.func @static(%x: tensor<2x3x4xf32>) -> tensor<2x12xf32> {
  %0 = "migraphx.flatten"(%x) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  return %0 : tensor<2x12xf32>
}

// -----

// CHECK-LABEL: @one_unknown
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: -1, 12>}
func.func @one_unknown(%x: tensor<?x3x4xf32>) -> tensor<?x12xf32> {
  %0 = "migraphx.flatten"(%x) {axis = 1 : i64} : (tensor<?x3x4xf32>) -> tensor<?x12xf32>
  return %0 : tensor<?x12xf32>
}

// -----

// Two unknown extents have no spelling in a reshape.
// CHECK-LABEL: @two_unknown
// CHECK-NEXT: migraphx.flatten
func.func @two_unknown(%x: tensor<?x3x?xf32>) -> tensor<?x?xf32> {
  %0 = "migraphx.flatten"(%x) {axis = 1 : i64} : (tensor<?x3x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
