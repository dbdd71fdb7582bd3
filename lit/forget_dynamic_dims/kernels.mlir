// RUN: mgx-opt %s --mgx-name-dynamic-dims --mgx-fuse-pointwise-reduce --mgx-dead-code-elimination --mgx-forget-dynamic-dims --mgx-dead-code-elimination --split-input-file | filecheck %s
// Inside of a kernel a broadcast to dynamic dims reads them of the kernel's own values.

// CHECK-LABEL: @row_and_column
// CHECK: "migraphx.pointwise"(%arg0, %arg1)
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%arg3, %arg2)
// CHECK: %[[A:.*]] = "migraphx.multibroadcast"(%arg2, %[[B]])
// CHECK: "migraphx.sub"(%[[A]], %[[B]]) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
func.func @row_and_column(%x: tensor<?x1xf32>, %y: tensor<1x?xf32>) -> tensor<?x?xf32> {
  %0 = "migraphx.multibroadcast"(%x, %y) : (tensor<?x1xf32>, tensor<1x?xf32>) -> tensor<?x?xf32>
  %1 = "migraphx.multibroadcast"(%y, %x) : (tensor<1x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
  %2 = "migraphx.sub"(%0, %1) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %2 : tensor<?x?xf32>
}

// -----

// The sum of rows and what follows are one kernel, as with fixed dims.
// CHECK-LABEL: @norm
// CHECK-COUNT-1: "migraphx.fused_reduce"(%arg0
// CHECK-NOT: "migraphx.pointwise"
// CHECK: return
func.func @norm(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 2>} : (tensor<?x?x8xf32>) -> tensor<?x?x1xf32>
  %1 = "migraphx.multibroadcast"(%0, %x) : (tensor<?x?x1xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %2 : tensor<?x?x8xf32>
}

// -----

// No operand of the kernel has the dynamic dim: its ops are alone, and one reads the dims.
// CHECK-LABEL: @dims_of_none
// CHECK-NOT: "migraphx.fused_reduce"
// CHECK: %[[D:.*]] = "migraphx.concat"
// CHECK: %[[B:.*]] = "migraphx.broadcast_with_dims"(%arg1, %[[D]]) : (tensor<4x8xf32>, tensor<3xi64>) -> tensor<?x4x8xf32>
// CHECK: "migraphx.reduce_sum"(%[[B]])
func.func @dims_of_none(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> (tensor<?x8xf32>, tensor<?x1x8xf32>) {
  %0 = "migraphx.relu"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x8xf32>) -> tensor<1xi64>
  %2 = "migraphx.literal"() {value = dense<[4, 8]> : tensor<2xi64>} : () -> tensor<2xi64>
  %3 = "migraphx.concat"(%1, %2) {axis = 0 : i64} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %4 = "migraphx.broadcast_with_dims"(%w, %3) : (tensor<4x8xf32>, tensor<3xi64>) -> tensor<?x4x8xf32>
  %5 = "migraphx.reduce_sum"(%4) {axes = array<i64: 1>} : (tensor<?x4x8xf32>) -> tensor<?x1x8xf32>
  return %0, %5 : tensor<?x8xf32>, tensor<?x1x8xf32>
}

// -----

// A value of lower rank has the dynamic dim, and a literal the other dims.
// CHECK-LABEL: @row_of_lower_rank
// CHECK: %[[ONES:.*]] = "migraphx.multibroadcast"({{.*}}out_lens = array<i64: 1, 1, 1, 1>
// CHECK: "migraphx.multibroadcast"({{.*}}%[[ONES]]) {{.*}} -> tensor<1x1x1x?xi64>
func.func @row_of_lower_rank(%x: tensor<1xi64>, %n: tensor<?xi64>) -> tensor<1x1x1x?xi64> {
  %one = "migraphx.literal"() {value = dense<1> : tensor<1x1x1x1xi64>} : () -> tensor<1x1x1x1xi64>
  %m = "migraphx.max"(%x, %x) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %0 = "migraphx.multibroadcast"(%n, %one) : (tensor<?xi64>, tensor<1x1x1x1xi64>) -> tensor<1x1x1x?xi64>
  %1 = "migraphx.multibroadcast"(%m, %n, %one) : (tensor<1xi64>, tensor<?xi64>, tensor<1x1x1x1xi64>) -> tensor<1x1x1x?xi64>
  %2 = "migraphx.sub"(%0, %1) : (tensor<1x1x1x?xi64>, tensor<1x1x1x?xi64>) -> tensor<1x1x1x?xi64>
  return %2 : tensor<1x1x1x?xi64>
}
