// RUN: mgx-opt %s --mgx-eliminate-contiguous --split-input-file | filecheck %s

// CHECK-LABEL: @after_transpose
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"
// CHECK-NEXT: return %[[T]]
func.func @after_transpose(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.contiguous"(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// `layout` says something: it stays.
// CHECK-LABEL: @layout
// CHECK-NEXT: migraphx.layout
func.func @layout(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.layout"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
