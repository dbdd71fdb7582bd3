// RUN: mgx-opt %s --mgx-name-open-dims --mgx-fuse-pointwise-reduce --mgx-dead-code-elimination --mgx-forget-open-dims --mgx-dead-code-elimination --split-input-file | filecheck %s
// Inside of a kernel a broadcast to open dims reads them of the kernel's own values.

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
