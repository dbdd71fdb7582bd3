// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @softmax
// CHECK-NEXT: %[[Y:.*]] = "migraphx.softmax"(%arg0) {axis = 2 : i64} : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
// CHECK-NEXT: "migraphx.reshape"(%[[Y]]) {dims = array<i64: 2, 3, 4, 5>}
func.func @softmax(%x: tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4, 5>} : (tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32>
  %1 = "migraphx.softmax"(%0) {axis = -1 : i64} : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return %1 : tensor<2x3x4x5xf32>
}

// -----

// CHECK-LABEL: @logsoftmax
// CHECK-NEXT: "migraphx.logsoftmax"(%arg0) {axis = 1 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
func.func @logsoftmax(%x: tensor<?x4xf32>) -> tensor<?x2x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1, 2, 4>} : (tensor<?x4xf32>) -> tensor<?x2x4xf32>
  %1 = "migraphx.logsoftmax"(%0) {axis = 2 : i64} : (tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
  return %1 : tensor<?x2x4xf32>
}

// -----

// Near miss: along another axis.
// CHECK-LABEL: @middle
// CHECK: "migraphx.softmax"({{.*}}) {axis = 1 : i64} : (tensor<2x3x4xf32>)
func.func @middle(%x: tensor<6x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.softmax"(%0) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}
