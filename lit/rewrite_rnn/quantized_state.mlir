// RUN: mgx-opt %s --mgx-rewrite-rnn | filecheck %s

// Where no kernel runs all steps: the range of all rows, 0 in it, then whole numbers, whose sums
// are multiplied by both steps.
// CHECK-LABEL: @steps
// CHECK: migraphx.loop
// CHECK-DAG: migraphx.reduce_min
// CHECK-DAG: migraphx.reduce_max
// CHECK: migraphx.nearbyint
// CHECK: %[[CODES:.*]] = "migraphx.nearbyint"
// CHECK: "migraphx.max"(%[[CODES]]
// CHECK: %[[H:.*]] = "migraphx.min"
// CHECK: %[[SUMS:.*]] = "migraphx.dot"(%[[H]]
// CHECK: migraphx.multibroadcast
// CHECK: "migraphx.mul"(%[[SUMS]]
func.func @steps(%x: tensor<5x2x16xf32>, %r: tensor<1x16x4xf32>, %s: tensor<1x16xf32>) -> tensor<5x1x2x4xf32> {
  %h, %c = "migraphx.lstm_steps"(%x, %r, %s) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 1>, hidden_size = 4 : i64} : (tensor<5x2x16xf32>, tensor<1x16x4xf32>, tensor<1x16xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return %h : tensor<5x1x2x4xf32>
}
