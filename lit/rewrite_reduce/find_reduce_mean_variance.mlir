// RUN: mgx-opt %s --mgx-rewrite-reduce=variance --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-reduce --split-input-file | filecheck %s --check-prefix=OFF

// CHECK-LABEL: @variance
// CHECK: %[[M:.*]] = "migraphx.reduce_mean"(%arg0)
// CHECK: %[[S:.*]] = "migraphx.mul"(%arg0, %arg0)
// CHECK: %[[N:.*]] = "migraphx.reduce_mean"(%[[S]]) {axes = array<i64: 1>}
// CHECK: %[[Q:.*]] = "migraphx.mul"(%[[M]], %[[M]])
// CHECK: "migraphx.sub"(%[[N]], %[[Q]])
// OFF-LABEL: @variance
// OFF: migraphx.multibroadcast
// OFF-NEXT: migraphx.sub
// OFF-NEXT: migraphx.mul
// OFF-NEXT: migraphx.reduce_mean
func.func @variance(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "migraphx.mul"(%2, %2) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "migraphx.reduce_mean"(%3) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %4 : tensor<4x1xf32>
}

// -----

// A power; the axis counted from the end in one of the means.
// CHECK-LABEL: @power
// CHECK: "migraphx.mul"(%arg0, %arg0)
// CHECK-NOT: migraphx.pow
func.func @power(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %two = "migraphx.literal"() {value = dense<2.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "migraphx.pow"(%2, %two) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "migraphx.reduce_mean"(%3) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %4 : tensor<4x1xf32>
}

// -----

// The mean of other rows; the mean of y.
// CHECK-LABEL: @misses
// CHECK-NOT: "migraphx.mul"(%arg0, %arg0)
func.func @misses(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<1x4xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 4, 4>} : (tensor<1x4xf32>) -> tensor<4x4xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "migraphx.mul"(%2, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "migraphx.reduce_mean"(%3) {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %5 = "migraphx.reduce_mean"(%y) {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %6 = "migraphx.multibroadcast"(%5) {out_lens = array<i64: 4, 4>} : (tensor<4x1xf32>) -> tensor<4x4xf32>
  %7 = "migraphx.sub"(%x, %6) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %8 = "migraphx.mul"(%7, %7) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %9 = "migraphx.reduce_mean"(%8) {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  return %4, %9 : tensor<4x1xf32>, tensor<4x1xf32>
}
