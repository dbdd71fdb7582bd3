// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// The batch is split before the dot: behind it is the same.
// CHECK-LABEL: @split_batch
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%arg0, %arg1) : (tensor<6x2x3xf32>, tensor<6x3x4xf32>)
// CHECK-NEXT: "migraphx.reshape"(%[[D]]) {dims = array<i64: 2, 3, 2, 4>}
// CHECK-NEXT: return
func.func @split_batch(%x: tensor<6x2x3xf32>, %y: tensor<6x3x4xf32>) -> tensor<2x3x2x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 2, 3>} : (tensor<6x2x3xf32>) -> tensor<2x3x2x3xf32>
  %1 = "migraphx.reshape"(%y) {dims = array<i64: 2, 3, 3, 4>} : (tensor<6x3x4xf32>) -> tensor<2x3x3x4xf32>
  %2 = "migraphx.dot"(%0, %1) : (tensor<2x3x2x3xf32>, tensor<2x3x3x4xf32>) -> tensor<2x3x2x4xf32>
  return %2 : tensor<2x3x2x4xf32>
}

// -----

// CHECK-LABEL: @constant
// CHECK: %[[W:.*]] = "migraphx.reshape"(%{{.*}}) {dims = array<i64: 2, 1, 2>}
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%arg0, %[[W]])
// CHECK-NEXT: "migraphx.reshape"(%[[D]]) {dims = array<i64: 1, 2, 3, 2>}
func.func @constant(%x: tensor<2x3x1xf32>) -> tensor<1x2x3x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0, 2.0]], [[3.0, 4.0]]]]> : tensor<1x2x1x2xf32>} : () -> tensor<1x2x1x2xf32>
  %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 0>} : (tensor<2x3x1xf32>) -> tensor<1x2x3x1xf32>
  %1 = "migraphx.dot"(%0, %w) : (tensor<1x2x3x1xf32>, tensor<1x2x1x2xf32>) -> tensor<1x2x3x2xf32>
  return %1 : tensor<1x2x3x2xf32>
}

// -----

// Near misses: joining the batch is what rewrite_dot wants, the rows are reshaped, or one
// operand has the batch as it is.
// CHECK-LABEL: @stay
// CHECK: "migraphx.dot"{{.*}} -> tensor<6x2x4xf32>
// CHECK: "migraphx.dot"{{.*}} -> tensor<2x3x3x4xf32>
// CHECK: "migraphx.dot"{{.*}} -> tensor<2x3x2x4xf32>
func.func @stay(%x: tensor<2x3x2x3xf32>, %y: tensor<2x3x3x4xf32>, %z: tensor<6x3x2xf32>, %v: tensor<6x2x4xf32>, %u: tensor<6x2x3xf32>) -> (tensor<6x2x4xf32>, tensor<2x3x3x4xf32>, tensor<2x3x2x4xf32>) {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 6, 2, 3>} : (tensor<2x3x2x3xf32>) -> tensor<6x2x3xf32>
  %1 = "migraphx.reshape"(%y) {dims = array<i64: 6, 3, 4>} : (tensor<2x3x3x4xf32>) -> tensor<6x3x4xf32>
  %2 = "migraphx.dot"(%0, %1) : (tensor<6x2x3xf32>, tensor<6x3x4xf32>) -> tensor<6x2x4xf32>
  %3 = "migraphx.reshape"(%u) {dims = array<i64: 2, 3, 3, 2>} : (tensor<6x2x3xf32>) -> tensor<2x3x3x2xf32>
  %4 = "migraphx.reshape"(%v) {dims = array<i64: 2, 3, 2, 4>} : (tensor<6x2x4xf32>) -> tensor<2x3x2x4xf32>
  %5 = "migraphx.dot"(%3, %4) : (tensor<2x3x3x2xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x3x4xf32>
  %6 = "migraphx.reshape"(%u) {dims = array<i64: 2, 3, 2, 3>} : (tensor<6x2x3xf32>) -> tensor<2x3x2x3xf32>
  %7 = "migraphx.dot"(%6, %y) : (tensor<2x3x2x3xf32>, tensor<2x3x3x4xf32>) -> tensor<2x3x2x4xf32>
  return %2, %5, %7 : tensor<6x2x4xf32>, tensor<2x3x3x4xf32>, tensor<2x3x2x4xf32>
}
