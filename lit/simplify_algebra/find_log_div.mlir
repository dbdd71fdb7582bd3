// RUN: mgx-opt %s --mgx-simplify-algebra=fast-math=true --split-input-file | filecheck %s

// CHECK-LABEL: @log_softmax
// CHECK: %[[E:.*]] = "migraphx.exp"(%arg0)
// CHECK-NEXT: %[[S:.*]] = "migraphx.reduce_sum"(%[[E]])
// CHECK: %[[L:.*]] = "migraphx.log"(%[[S]]) : (tensor<2x1xf32>)
// CHECK: %[[M:.*]] = "migraphx.multibroadcast"(%[[L]])
// CHECK: "migraphx.sub"(%arg0, %[[M]])
// CHECK-NOT: migraphx.div
func.func @log_softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.div"(%0, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "migraphx.log"(%3) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// -----

// Near misses: nothing cancels in the first, the second may have the logarithm of a negative
// number on both sides of the bar.
// CHECK-LABEL: @plain
// CHECK: migraphx.div
// CHECK-NEXT: migraphx.log
func.func @plain(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.exp"(%y) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.div"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.log"(%1) : (tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @by_any
// CHECK: migraphx.div
// CHECK-NEXT: migraphx.log
func.func @by_any(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.div"(%0, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.log"(%1) : (tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
