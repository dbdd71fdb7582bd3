// RUN: mgx-opt %s --mgx-rewrite-reduce=logsoftmax --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-reduce --split-input-file | filecheck %s --check-prefix=OFF

// CHECK-LABEL: @logsoftmax
// CHECK-NEXT: %[[S:.*]] = "migraphx.softmax"(%arg0) {axis = 1 : i64}
// CHECK-NEXT: "migraphx.log"(%[[S]])
// OFF-LABEL: @logsoftmax
// OFF-NEXT: migraphx.logsoftmax
func.func @logsoftmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.logsoftmax"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @softmax
// CHECK-NOT: migraphx.log
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.softmax"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
