// Broadcasts and dimensions_of: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @broadcast_0(
// CHECK: %0 = "migraphx.broadcast"(%arg0) {axis = 1 : i64, out_dyn_dims = array<i64>, out_lens = array<i64: 2, 8, 4>} : (tensor<8xf32>) -> tensor<2x8x4xf32>
func.func @broadcast_0(%arg0: tensor<8xf32>) -> (tensor<2x8x4xf32>) {
  %0 = "migraphx.broadcast"(%arg0) {axis = 1 : i64, out_dyn_dims = array<i64>, out_lens = array<i64: 2, 8, 4>} : (tensor<8xf32>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}

// -----

// CHECK-LABEL: @broadcast_1(
// CHECK: %0 = "migraphx.broadcast"(%arg0, %arg1) {axis = 1 : i64, out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<8xf32>, tensor<?x8x?xi64>) -> tensor<?x8x?xf32>
func.func @broadcast_1(%arg0: tensor<8xf32>, %arg1: tensor<?x8x?xi64>) -> (tensor<?x8x?xf32>) {
  %0 = "migraphx.broadcast"(%arg0, %arg1) {axis = 1 : i64, out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<8xf32>, tensor<?x8x?xi64>) -> tensor<?x8x?xf32>
  return %0 : tensor<?x8x?xf32>
}

// -----

// CHECK-LABEL: @broadcast_2(
// CHECK: %0 = "migraphx.broadcast"(%arg0, %arg1) {axis = 1 : i64, out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<8xf32>, tensor<?x?xf32>) -> tensor<?x8xf32>
func.func @broadcast_2(%arg0: tensor<8xf32>, %arg1: tensor<?x?xf32>) -> (tensor<?x8xf32>) {
  %0 = "migraphx.broadcast"(%arg0, %arg1) {axis = 1 : i64, out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<8xf32>, tensor<?x?xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @broadcast_3(
// CHECK: %0 = "migraphx.broadcast"(%arg0) {axis = 0 : i64, out_dyn_dims = array<i64: 2, 2, 3, 3>, out_lens = array<i64>} : (tensor<2xf32>) -> tensor<2x3xf32>
func.func @broadcast_3(%arg0: tensor<2xf32>) -> (tensor<2x3xf32>) {
  %0 = "migraphx.broadcast"(%arg0) {axis = 0 : i64, out_dyn_dims = array<i64: 2, 2, 3, 3>, out_lens = array<i64>} : (tensor<2xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @multibroadcast_0(
// CHECK: %0 = "migraphx.multibroadcast"(%arg0) {out_dyn_dims = array<i64>, out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
func.func @multibroadcast_0(%arg0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %0 = "migraphx.multibroadcast"(%arg0) {out_dyn_dims = array<i64>, out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @multibroadcast_1(
// CHECK: %0 = "migraphx.multibroadcast"(%arg0, %arg1) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<1xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
func.func @multibroadcast_1(%arg0: tensor<1xf32>, %arg1: tensor<?x3xf32>) -> (tensor<?x3xf32>) {
  %0 = "migraphx.multibroadcast"(%arg0, %arg1) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<1xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: @multibroadcast_2(
// CHECK: %0 = "migraphx.multibroadcast"(%arg0, %arg1) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<?xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
func.func @multibroadcast_2(%arg0: tensor<?xf32>, %arg1: tensor<2x3xi64>) -> (tensor<2x3xf32>) {
  %0 = "migraphx.multibroadcast"(%arg0, %arg1) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<?xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @multibroadcast_3(
// CHECK: %0 = "migraphx.multibroadcast"(%arg0, %arg1, %arg2) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<?xf32>, tensor<?x1xf32>, tensor<4x1x1xf32>) -> tensor<4x?x?xf32>
func.func @multibroadcast_3(%arg0: tensor<?xf32>, %arg1: tensor<?x1xf32>, %arg2: tensor<4x1x1xf32>) -> (tensor<4x?x?xf32>) {
  %0 = "migraphx.multibroadcast"(%arg0, %arg1, %arg2) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<?xf32>, tensor<?x1xf32>, tensor<4x1x1xf32>) -> tensor<4x?x?xf32>
  return %0 : tensor<4x?x?xf32>
}

// -----

// CHECK-LABEL: @multibroadcast_4(
// CHECK: %0 = "migraphx.multibroadcast"(%arg0) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<f32>) -> tensor<f32>
func.func @multibroadcast_4(%arg0: tensor<f32>) -> (tensor<f32>) {
  %0 = "migraphx.multibroadcast"(%arg0) {out_dyn_dims = array<i64>, out_lens = array<i64>} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: @multibroadcast_5(
// CHECK: %0 = "migraphx.multibroadcast"(%arg0, %arg1) {out_dyn_dims = array<i64: 4, 4>, out_lens = array<i64>} : (tensor<?xf32>, tensor<?xf32>) -> tensor<4xf32>
func.func @multibroadcast_5(%arg0: tensor<?xf32>, %arg1: tensor<?xf32>) -> (tensor<4xf32>) {
  %0 = "migraphx.multibroadcast"(%arg0, %arg1) {out_dyn_dims = array<i64: 4, 4>, out_lens = array<i64>} : (tensor<?xf32>, tensor<?xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @scalar_0(
// CHECK: %0 = "migraphx.scalar"(%arg0) {scalar_bcst_dims = array<i64: 2, 3>} : (tensor<1x1xf32>) -> tensor<2x3xf32>
func.func @scalar_0(%arg0: tensor<1x1xf32>) -> (tensor<2x3xf32>) {
  %0 = "migraphx.scalar"(%arg0) {scalar_bcst_dims = array<i64: 2, 3>} : (tensor<1x1xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @broadcast_with_dims_0(
// CHECK: %0 = "migraphx.broadcast_with_dims"(%arg0, %arg1) : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
func.func @broadcast_with_dims_0(%arg0: tensor<1x3xf32>, %arg1: tensor<2xi64>) -> (tensor<?x3xf32>) {
  %0 = "migraphx.broadcast_with_dims"(%arg0, %arg1) : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: @broadcast_with_dims_1(
// CHECK: %0 = "migraphx.broadcast_with_dims"(%arg0, %arg1) : (tensor<2x1x3xf32>, tensor<1xi64>) -> tensor<2x1x3xf32>
func.func @broadcast_with_dims_1(%arg0: tensor<2x1x3xf32>, %arg1: tensor<1xi64>) -> (tensor<2x1x3xf32>) {
  %0 = "migraphx.broadcast_with_dims"(%arg0, %arg1) : (tensor<2x1x3xf32>, tensor<1xi64>) -> tensor<2x1x3xf32>
  return %0 : tensor<2x1x3xf32>
}

// -----

// CHECK-LABEL: @broadcast_with_dims_2(
// CHECK: %0 = "migraphx.broadcast_with_dims"(%arg0, %arg1) : (tensor<3x1xf32>, tensor<3xi64>) -> tensor<?x3x?xf32>
func.func @broadcast_with_dims_2(%arg0: tensor<3x1xf32>, %arg1: tensor<3xi64>) -> (tensor<?x3x?xf32>) {
  %0 = "migraphx.broadcast_with_dims"(%arg0, %arg1) : (tensor<3x1xf32>, tensor<3xi64>) -> tensor<?x3x?xf32>
  return %0 : tensor<?x3x?xf32>
}

// -----

// CHECK-LABEL: @broadcast_for_dot_0(
// CHECK: %0 = "migraphx.broadcast_for_dot"(%arg0, %arg1) : (tensor<3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x4xf32>
func.func @broadcast_for_dot_0(%arg0: tensor<3x4xf32>, %arg1: tensor<?x4x5xf32>) -> (tensor<?x3x4xf32>) {
  %0 = "migraphx.broadcast_for_dot"(%arg0, %arg1) : (tensor<3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}

// -----

// CHECK-LABEL: @dimensions_of_0(
// CHECK: %0 = "migraphx.dimensions_of"(%arg0) {end = 0 : i64, start = 1 : i64} : (tensor<?x3x4xf32>) -> tensor<2xi64>
func.func @dimensions_of_0(%arg0: tensor<?x3x4xf32>) -> (tensor<2xi64>) {
  %0 = "migraphx.dimensions_of"(%arg0) {end = 0 : i64, start = 1 : i64} : (tensor<?x3x4xf32>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----

// CHECK-LABEL: @dimensions_of_1(
// CHECK: %0 = "migraphx.dimensions_of"(%arg0) {end = 0 : i64, start = 0 : i64} : (tensor<f32>) -> tensor<0xi64>
func.func @dimensions_of_1(%arg0: tensor<f32>) -> (tensor<0xi64>) {
  %0 = "migraphx.dimensions_of"(%arg0) {end = 0 : i64, start = 0 : i64} : (tensor<f32>) -> tensor<0xi64>
  return %0 : tensor<0xi64>
}
