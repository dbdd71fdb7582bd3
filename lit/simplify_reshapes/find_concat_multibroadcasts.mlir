// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @rows
// CHECK-NEXT: %[[C:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 0 : i64}
// CHECK-NEXT: "migraphx.multibroadcast"(%[[C]]) {{{.*}}out_lens = array<i64: 4, 5>}
// CHECK-NEXT: return
func.func @rows(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<4x5xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 2>} : (tensor<2xf32>) -> tensor<4x2xf32>
  %1 = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %2 : tensor<4x5xf32>
}

// -----

// CHECK-LABEL: @channels
// CHECK-NEXT: %[[C:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 0 : i64}
// CHECK-NEXT: "migraphx.broadcast"(%[[C]]) {axis = 1 : i64, {{.*}}out_lens = array<i64: 1, 5, 2>}
// CHECK-NEXT: return
func.func @channels(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<1x5x2xf32> {
  %0 = "migraphx.broadcast"(%x) {axis = 1 : i64, out_lens = array<i64: 1, 2, 2>} : (tensor<2xf32>) -> tensor<1x2x2xf32>
  %1 = "migraphx.broadcast"(%y) {axis = 1 : i64, out_lens = array<i64: 1, 3, 2>} : (tensor<3xf32>) -> tensor<1x3x2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<1x2x2xf32>, tensor<1x3x2xf32>) -> tensor<1x5x2xf32>
  return %2 : tensor<1x5x2xf32>
}

// -----

// Near misses: along an axis that the broadcasts add, along one that they repeat, operands of
// other dims.
// CHECK-LABEL: @stay
// CHECK-NOT: "migraphx.concat"(%arg
// CHECK: return
func.func @stay(%x: tensor<3xf32>, %y: tensor<3xf32>, %z: tensor<1x3xf32>, %w: tensor<2x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xf32>, tensor<2x2x6xf32>) {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %1 = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %3 = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 4, 3>} : (tensor<1x3xf32>) -> tensor<4x3xf32>
  %4 = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 3>} : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %5 = "migraphx.concat"(%3, %4) {axis = 0 : i64} : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %6 = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 2, 3>} : (tensor<1x3xf32>) -> tensor<2x2x3xf32>
  %7 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 2, 3>} : (tensor<2x3xf32>) -> tensor<2x2x3xf32>
  %8 = "migraphx.concat"(%6, %7) {axis = 2 : i64} : (tensor<2x2x3xf32>, tensor<2x2x3xf32>) -> tensor<2x2x6xf32>
  return %2, %5, %8 : tensor<6x3xf32>, tensor<6x3xf32>, tensor<2x2x6xf32>
}
