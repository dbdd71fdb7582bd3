// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @after
// CHECK-NEXT: %[[P:.*]] = "migraphx.pooling"(%arg0) {{.*}}channels_last = true
// CHECK-NEXT: "migraphx.transpose"(%[[P]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @after(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x3x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
  return %1 : tensor<1x2x3x3xf32>
}

// -----

// Another transpose, or none.
// CHECK-LABEL: @alone
// CHECK-NEXT: "migraphx.pooling"(%arg0)
func.func @alone(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32> {
  %1 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
  return %1 : tensor<1x2x3x3xf32>
}

// -----

// CHECK-LABEL: @another
// CHECK-NEXT: migraphx.transpose
// CHECK-NEXT: migraphx.pooling
func.func @another(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x3x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 2, 1>} : (tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
  return %1 : tensor<1x2x3x3xf32>
}
