// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @last
// CHECK-NEXT: %[[R:.*]] = "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1>}
// CHECK-NEXT: "migraphx.reshape"(%[[R]]) {dims = array<i64: 2, 3, 1>}
func.func @last(%x: tensor<6x4xf32>) -> tensor<2x3x1xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: -1>} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  return %1 : tensor<2x3x1xf32>
}

// -----

// CHECK-LABEL: @middle
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: migraphx.reduce_mean
func.func @middle(%x: tensor<6x4xf32>) -> tensor<2x1x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  return %1 : tensor<2x1x4xf32>
}
