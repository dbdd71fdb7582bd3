// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @batch
// CHECK: %[[D:.*]] = "migraphx.dot"({{.*}}) : (tensor<1x2x3xf32>, tensor<1x3x2xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %[[B:.*]] = "migraphx.multibroadcast"(%[[D]])
// CHECK-NEXT: return %[[B]]
func.func @batch(%x: tensor<2x3xf32>, %y: tensor<1x3x2xf32>) -> tensor<4x2x2xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 2, 3>} : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  %1 = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 4, 3, 2>} : (tensor<1x3x2xf32>) -> tensor<4x3x2xf32>
  %2 = "migraphx.dot"(%0, %1) : (tensor<4x2x3xf32>, tensor<4x3x2xf32>) -> tensor<4x2x2xf32>
  return %2 : tensor<4x2x2xf32>
}

// -----

// One batch axis of two, and a reshape on the way.
// CHECK-LABEL: @one_of_two
// CHECK: "migraphx.dot"({{.*}}) : (tensor<4x1x2x3xf32>, tensor<4x1x3x2xf32>) -> tensor<4x1x2x2xf32>
func.func @one_of_two(%x: tensor<8x3xf32>, %y: tensor<3x2xf32>) -> tensor<4x5x2x2xf32> {
  %r = "migraphx.reshape"(%x) {dims = array<i64: 4, 1, 2, 3>} : (tensor<8x3xf32>) -> tensor<4x1x2x3xf32>
  %0 = "migraphx.multibroadcast"(%r) {out_lens = array<i64: 4, 5, 2, 3>} : (tensor<4x1x2x3xf32>) -> tensor<4x5x2x3xf32>
  %1 = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 4, 5, 3, 2>} : (tensor<3x2xf32>) -> tensor<4x5x3x2xf32>
  %2 = "migraphx.dot"(%0, %1) : (tensor<4x5x2x3xf32>, tensor<4x5x3x2xf32>) -> tensor<4x5x2x2xf32>
  return %2 : tensor<4x5x2x2xf32>
}

// -----

// Near misses: one side is a batch of its own; rows that are repeated are no batch.
// CHECK-LABEL: @weights
// CHECK: "migraphx.dot"(%arg0, %{{.*}}) : (tensor<4x2x3xf32>
func.func @weights(%x: tensor<4x2x3xf32>, %y: tensor<3x2xf32>) -> tensor<4x2x2xf32> {
  %1 = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 4, 3, 2>} : (tensor<3x2xf32>) -> tensor<4x3x2xf32>
  %2 = "migraphx.dot"(%x, %1) : (tensor<4x2x3xf32>, tensor<4x3x2xf32>) -> tensor<4x2x2xf32>
  return %2 : tensor<4x2x2xf32>
}

// -----

// CHECK-LABEL: @rows
// CHECK: "migraphx.dot"({{.*}}) : (tensor<4x3xf32>
func.func @rows(%x: tensor<3xf32>, %y: tensor<3x2xf32>) -> tensor<4x2xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %2 = "migraphx.dot"(%0, %y) : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}
