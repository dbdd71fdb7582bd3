// RUN: mgx-opt %s --mgx-rewrite-reduce=softmax --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-reduce --split-input-file | filecheck %s --check-prefix=OFF

// CHECK-LABEL: @softmax
// CHECK-NEXT: %[[M:.*]] = "migraphx.reduce_max"(%arg0) {axes = array<i64: 0>}
// CHECK-NEXT: %[[B:.*]] = "migraphx.multibroadcast"(%[[M]])
// CHECK-NEXT: %[[S:.*]] = "migraphx.sub"(%arg0, %[[B]])
// CHECK-NEXT: %[[E:.*]] = "migraphx.exp"(%[[S]])
// CHECK-NEXT: %[[T:.*]] = "migraphx.reduce_sum"(%[[E]]) {axes = array<i64: 0>}
// CHECK-NEXT: %[[R:.*]] = "migraphx.multibroadcast"(%[[T]])
// CHECK-NEXT: "migraphx.div"(%[[E]], %[[R]])
// OFF-LABEL: @softmax
// OFF-NEXT: migraphx.softmax
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.softmax"(%x) {axis = -2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A row of run-time length takes its broadcasts from the operand.
// CHECK-LABEL: @dynamic
// CHECK: "migraphx.multibroadcast"(%{{.*}}, %arg0)
// CHECK: migraphx.div
func.func @dynamic(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %0 = "migraphx.softmax"(%x) {axis = 1 : i64} : (tensor<4x?xf32>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @logsoftmax
// CHECK-NEXT: migraphx.logsoftmax
func.func @logsoftmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.logsoftmax"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
