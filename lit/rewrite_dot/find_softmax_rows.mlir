// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @last
// CHECK-NEXT: %[[S:.*]] = "migraphx.softmax"(%arg0) {axis = 2 : i64}
// CHECK-NEXT: "migraphx.reshape"(%[[S]]) {dims = array<i64: 2, 3, 5, 4>}
func.func @last(%x: tensor<6x5x4xf32>) -> tensor<2x3x5x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 5, 4>} : (tensor<6x5x4xf32>) -> tensor<2x3x5x4xf32>
  %1 = "migraphx.softmax"(%0) {axis = -1 : i64} : (tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32>
  return %1 : tensor<2x3x5x4xf32>
}

// -----

// CHECK-LABEL: @another
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: migraphx.logsoftmax
func.func @another(%x: tensor<6x5x4xf32>) -> tensor<2x3x5x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 5, 4>} : (tensor<6x5x4xf32>) -> tensor<2x3x5x4xf32>
  %1 = "migraphx.logsoftmax"(%0) {axis = 1 : i64} : (tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32>
  return %1 : tensor<2x3x5x4xf32>
}
