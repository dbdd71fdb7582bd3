// RUN: mgx-opt %s --mgx-fuse-pointwise --split-input-file | filecheck %s

// What is read elsewhere too is a second result.
// CHECK-LABEL: @two
// CHECK-NEXT: %[[K:.*]]:2 = "migraphx.pointwise"(%arg0) ({
// CHECK: "migraphx.yield"(%[[A:.*]], %[[B:.*]]) : (tensor<2x3xf32>, tensor<2x3xi1>)
// CHECK: return %[[K]]#0, %[[K]]#1
func.func @two(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi1>) {
  %a = "migraphx.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "migraphx.isnan"(%a) : (tensor<2x3xf32>) -> tensor<2x3xi1>
  return %a, %b : tensor<2x3xf32>, tensor<2x3xi1>
}

// -----

// The other reader is no pointwise op.
// CHECK-LABEL: @reduced
// CHECK-NEXT: %[[K:.*]]:2 = "migraphx.pointwise"(%arg0) ({
// CHECK: "migraphx.reduce_sum"(%[[K]]#0)
func.func @reduced(%x: tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x3xf32>) {
  %a = "migraphx.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %b = "migraphx.relu"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r, %b : tensor<2x1xf32>, tensor<2x3xf32>
}

// -----

// One result: both readers are in the kernel.
// CHECK-LABEL: @inside
// CHECK-NEXT: %{{[a-z0-9]+}} = "migraphx.pointwise"(%arg0) ({
func.func @inside(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = "migraphx.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "migraphx.relu"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.mul"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}
