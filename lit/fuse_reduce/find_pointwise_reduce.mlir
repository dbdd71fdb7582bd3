// RUN: mgx-opt %s --mgx-fuse-reduce --split-input-file | filecheck %s

// What only the reduction reads is computed in its kernel.
// CHECK-LABEL: @chain
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_reduce"({{.*}}) ({
// CHECK: migraphx.mul
// CHECK-NEXT: migraphx.reduce_sum
// CHECK: }) {axes = array<i64: 1>}
// CHECK-NEXT: return %[[K]]
func.func @chain(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x1xf32> {
  %m = "migraphx.mul"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reduce_sum"(%m) {axes = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %r : tensor<2x1xf32>
}

// -----

// The reduced tensor may be a result too.
// CHECK-LABEL: @second_result
// CHECK-NEXT: %[[K:.*]]:2 = "migraphx.fused_reduce"({{.*}}) ({
func.func @second_result(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x3xf32>) {
  %m = "migraphx.mul"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reduce_max"(%m) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %r, %m : tensor<2x1xf32>, tensor<2x3xf32>
}

// -----

// Near misses. No other value may.
// CHECK-LABEL: @earlier
// CHECK: migraphx.pointwise
// CHECK: migraphx.fused_reduce
func.func @earlier(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x3xf32>) {
  %a = "migraphx.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = "migraphx.mul"(%a, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reduce_max"(%m) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %r, %a : tensor<2x1xf32>, tensor<2x3xf32>
}

// -----

// Nor with run-time dims.
// CHECK-LABEL: @dynamic
// CHECK: migraphx.pointwise
// CHECK: migraphx.fused_reduce
func.func @dynamic(%x: tensor<?x3xf32>) -> (tensor<?x1xf32>, tensor<?x3xf32>) {
  %m = "migraphx.neg"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %r = "migraphx.reduce_max"(%m) {axes = array<i64: 1>} : (tensor<?x3xf32>) -> tensor<?x1xf32>
  return %r, %m : tensor<?x1xf32>, tensor<?x3xf32>
}

// -----

// It reads a broadcast of what is computed.
// CHECK-LABEL: @broadcast
// CHECK: migraphx.pointwise
// CHECK: migraphx.fused_reduce
func.func @broadcast(%x: tensor<3xf32>) -> tensor<2x1xf32> {
  %m = "migraphx.neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %w = "migraphx.multibroadcast"(%m) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reduce_max"(%w) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %r : tensor<2x1xf32>
}
