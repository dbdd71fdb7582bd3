// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @channels
// CHECK-NEXT: "migraphx.broadcast"(%arg0) {axis = 3 : i64, {{.*}}out_lens = array<i64: 2, 4, 5, 3>
// CHECK-NEXT: return
func.func @channels(%x: tensor<3xf32>) -> tensor<2x4x5x3xf32> {
  %0 = "migraphx.broadcast"(%x) {axis = 1 : i64, out_lens = array<i64: 2, 3, 4, 5>} : (tensor<3xf32>) -> tensor<2x3x4x5xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  return %1 : tensor<2x4x5x3xf32>
}

// -----

// CHECK-LABEL: @image
// CHECK-NEXT: %[[R:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 1, 3, 4, 1>}
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%[[R]]) {permutation = array<i64: 0, 3, 2, 1>} : (tensor<1x3x4x1xf32>) -> tensor<1x1x4x3xf32>
// CHECK-NEXT: "migraphx.multibroadcast"(%[[T]]) {{.*}}out_lens = array<i64: 2, 5, 4, 3>
func.func @image(%x: tensor<3x4xf32>) -> tensor<2x5x4x3xf32> {
  %0 = "migraphx.broadcast"(%x) {axis = 1 : i64, out_lens = array<i64: 2, 3, 4, 5>} : (tensor<3x4xf32>) -> tensor<2x3x4x5xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 3, 2, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x5x4x3xf32>
  return %1 : tensor<2x5x4x3xf32>
}

// -----

// CHECK-LABEL: @right_aligned
// CHECK: "migraphx.multibroadcast"({{.*}}) {{.*}}out_lens = array<i64: 2, 4, 5, 3>{{.*}} : (tensor<1x1x5x3xf32>)
func.func @right_aligned(%x: tensor<3x1x5xf32>) -> tensor<2x4x5x3xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 2, 3, 4, 5>} : (tensor<3x1x5xf32>) -> tensor<2x3x4x5xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  return %1 : tensor<2x4x5x3xf32>
}

// -----

// CHECK-LABEL: @element
// CHECK-NEXT: %[[R:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 1>}
// CHECK-NEXT: "migraphx.multibroadcast"(%[[R]]) {{.*}}out_lens = array<i64: 4, 3>
func.func @element(%x: tensor<1x1xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 3, 4>} : (tensor<1x1xf32>) -> tensor<3x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: @scalar
// CHECK-NEXT: "migraphx.multibroadcast"(%arg0) {{.*}}out_lens = array<i64: 4, 3>
func.func @scalar(%x: tensor<1xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.scalar"(%x) {scalar_bcst_dims = array<i64: 3, 4>} : (tensor<1xf32>) -> tensor<3x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// Near misses: run-time dims, no broadcast.
// CHECK-LABEL: @dynamic
// CHECK: migraphx.multibroadcast
// CHECK-NEXT: migraphx.transpose
func.func @dynamic(%x: tensor<4xf32>, %y: tensor<?x4xf32>) -> tensor<4x?xf32> {
  %0 = "migraphx.multibroadcast"(%x, %y) : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  return %1 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @relu
// CHECK: migraphx.relu
// CHECK-NEXT: migraphx.transpose
func.func @relu(%x: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.relu"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: @nothing
// CHECK-NEXT: migraphx.multibroadcast
// CHECK-NEXT: migraphx.transpose
func.func @nothing(%x: tensor<0xf32>) -> tensor<0x4xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 0>} : (tensor<0xf32>) -> tensor<4x0xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x0xf32>) -> tensor<0x4xf32>
  return %1 : tensor<0x4xf32>
}
