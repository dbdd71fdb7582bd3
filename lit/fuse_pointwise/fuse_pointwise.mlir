// RUN: mgx-opt %s --mgx-fuse-pointwise --split-input-file | filecheck %s

// A chain is one kernel; the broadcast of its operand goes inside.
// CHECK-LABEL: @chain
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: ^bb0(%[[X:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<3xf32>):
// CHECK: %[[M:.*]] = "migraphx.multibroadcast"(%[[B]])
// CHECK: %[[A:.*]] = "migraphx.add"(%[[X]], %[[M]])
// CHECK: %[[R:.*]] = "migraphx.relu"(%[[A]])
// CHECK: "migraphx.yield"(%[[R]])
// CHECK: return %[[K]]
func.func @chain(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.add"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.relu"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// -----

// What follows a dot runs in its kernel.
// CHECK-LABEL: @dot
// CHECK-NEXT: %[[K:.*]] = "migraphx.group"(
// CHECK: "migraphx.dot"
// CHECK: "migraphx.add"
// CHECK: "migraphx.relu"
// CHECK: "migraphx.yield"
// CHECK: tag = "dot"
// CHECK: return %[[K]]
func.func @dot(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 4>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "migraphx.relu"(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// -----

// A reduction with what lies around it.
// CHECK-LABEL: @reduce
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_reduce"(%arg0)
// CHECK: migraphx.mul
// CHECK: migraphx.reduce_mean
// CHECK: migraphx.rsqrt
// CHECK: return %[[K]]
func.func @reduce(%x: tensor<2x8xf32>) -> tensor<2x1xf32> {
  %0 = "migraphx.mul"(%x, %x) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 1>} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %2 = "migraphx.rsqrt"(%1) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  return %2 : tensor<2x1xf32>
}

// -----

// Two kernels: the dims differ.
// CHECK-LABEL: @different_dims
// CHECK-COUNT-2: migraphx.pointwise
// CHECK: return
func.func @different_dims(%x: tensor<2x3xf32>) -> (tensor<6xf32>) {
  %0 = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %2 = "migraphx.exp"(%1) : (tensor<6xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

// -----

// Nothing to compute.
// CHECK-LABEL: @views
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: return
func.func @views(%x: tensor<2x3xf32>) -> (tensor<6xf32>) {
  %1 = "migraphx.reshape"(%x) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
