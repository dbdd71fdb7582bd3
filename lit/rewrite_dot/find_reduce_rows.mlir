// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @last
// CHECK-NEXT: %[[Y:.*]] = "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1>} : (tensor<6x4xf32>) -> tensor<6x1xf32>
// CHECK-NEXT: "migraphx.reshape"(%[[Y]]) {dims = array<i64: 2, 3, 1>}
func.func @last(%x: tensor<6x4xf32>) -> tensor<2x3x1xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: -1>} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  return %1 : tensor<2x3x1xf32>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK: "migraphx.reduce_max"(%arg0) {axes = array<i64: 1>} : (tensor<?x4xf32>) -> tensor<?x1xf32>
// CHECK: "migraphx.reshape"({{.*}}) {dims = array<i64: -1, 2, 1>}
func.func @dynamic(%x: tensor<?x4xf32>) -> tensor<?x2x1xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1, 2, 4>} : (tensor<?x4xf32>) -> tensor<?x2x4xf32>
  %1 = "migraphx.reduce_max"(%0) {axes = array<i64: 2>} : (tensor<?x2x4xf32>) -> tensor<?x2x1xf32>
  return %1 : tensor<?x2x1xf32>
}

// -----

// Near misses: another axis, two axes, all axes.
// CHECK-LABEL: @middle
// CHECK: "migraphx.reduce_sum"({{.*}}) {axes = array<i64: 1>} : (tensor<2x3x4xf32>)
func.func @middle(%x: tensor<6x4xf32>) -> tensor<2x1x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  return %1 : tensor<2x1x4xf32>
}

// -----

// CHECK-LABEL: @two
// CHECK: "migraphx.reduce_min"({{.*}}) {axes = array<i64: 1, 2>}
func.func @two(%x: tensor<6x4xf32>) -> tensor<2x1x1xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_min"(%0) {axes = array<i64: 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x1x1xf32>
  return %1 : tensor<2x1x1xf32>
}

// -----

// CHECK-LABEL: @all
// CHECK: "migraphx.reduce_prod"({{.*}}) {axes = array<i64>}
func.func @all(%x: tensor<6x4xf32>) -> tensor<1x1x1xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.reduce_prod"(%0) {axes = array<i64>} : (tensor<2x3x4xf32>) -> tensor<1x1x1xf32>
  return %1 : tensor<1x1x1xf32>
}
