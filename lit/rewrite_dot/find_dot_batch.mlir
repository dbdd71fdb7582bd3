// RUN: mgx-opt %s --mgx-rewrite-dot=aligned=4 --split-input-file | filecheck %s

// CHECK-LABEL: @ragged
// CHECK-DAG: %[[A:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6, 5, 4>}
// CHECK-DAG: %[[B:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 6, 4, 4>}
// CHECK: %[[D:.*]] = "migraphx.dot"(%[[A]], %[[B]])
// CHECK: "migraphx.reshape"(%[[D]]) {dims = array<i64: 2, 3, 5, 4>}
func.func @ragged(%a: tensor<2x3x5x4xf32>, %b: tensor<2x3x4x4xf32>) -> tensor<2x3x5x4xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3x5x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x5x4xf32>
  return %0 : tensor<2x3x5x4xf32>
}

// -----

// Whole tiles stay in rank 4.
// CHECK-LABEL: @whole_tiles
// CHECK-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @whole_tiles(%a: tensor<2x3x8x4xf32>, %b: tensor<2x3x4x4xf32>) -> tensor<2x3x8x4xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3x8x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x8x4xf32>
  return %0 : tensor<2x3x8x4xf32>
}
