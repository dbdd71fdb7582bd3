// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @both
// CHECK-NEXT: %[[Y:.*]] = "migraphx.add"(%arg0, %arg1) : (tensor<1x8x6x4xf32>, tensor<1x8x6x4xf32>)
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @both(%x: tensor<1x8x6x4xf32>, %y: tensor<1x8x6x4xf32>) -> tensor<1x4x8x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x6x4xf32>) -> tensor<1x4x8x6xf32>
  %1 = "migraphx.transpose"(%y) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x6x4xf32>) -> tensor<1x4x8x6xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x4x8x6xf32>, tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  return %2 : tensor<1x4x8x6xf32>
}

// -----

// A bias along the channels; attributes of the op stay.
// CHECK-LABEL: @bias
// CHECK: %[[B:.*]] = "migraphx.broadcast"(%arg1) {axis = 3 : i64, {{.*}}out_lens = array<i64: 1, 8, 6, 4>
// CHECK-NEXT: %[[Y:.*]] = "migraphx.mul"(%[[B]], %arg0)
// CHECK-NEXT: %[[Z:.*]] = "migraphx.leaky_relu"(%[[Y]]) {alpha = 2.500000e-01 : f32} : (tensor<1x8x6x4xf32>)
// CHECK-NEXT: "migraphx.transpose"(%[[Z]])
func.func @bias(%x: tensor<1x8x6x4xf32>, %b: tensor<4xf32>) -> tensor<1x4x8x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x6x4xf32>) -> tensor<1x4x8x6xf32>
  %1 = "migraphx.broadcast"(%b) {axis = 1 : i64, out_lens = array<i64: 1, 4, 8, 6>} : (tensor<4xf32>) -> tensor<1x4x8x6xf32>
  %2 = "migraphx.mul"(%1, %0) : (tensor<1x4x8x6xf32>, tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  %3 = "migraphx.leaky_relu"(%2) {alpha = 0.25 : f32} : (tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  return %3 : tensor<1x4x8x6xf32>
}

// -----

// The result's type is the op's own.
// CHECK-LABEL: @convert
// CHECK: "migraphx.convert"(%arg0) {{.*}} : (tensor<?x6x4xf32>) -> tensor<?x6x4xi32>
func.func @convert(%x: tensor<?x6x4xf32>) -> tensor<?x4x6xi32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<?x6x4xf32>) -> tensor<?x4x6xf32>
  %1 = "migraphx.convert"(%0) {target_type = i32} : (tensor<?x4x6xf32>) -> tensor<?x4x6xi32>
  return %1 : tensor<?x4x6xi32>
}

// -----

// Near misses: another operand would have to move (and nothing is left of the try), another
// order, rank 2.
// CHECK-LABEL: @other
// CHECK-COUNT-1: migraphx.transpose
// CHECK-NOT: migraphx.transpose
// CHECK: "migraphx.where"({{.*}}) : (tensor<1x4x8x6xi1>
func.func @other(%x: tensor<1x8x6x4xf32>, %y: tensor<1x4x8x6xf32>, %c: tensor<1xi1>) -> tensor<1x4x8x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x6x4xf32>) -> tensor<1x4x8x6xf32>
  %1 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 1, 4, 8, 6>} : (tensor<1xi1>) -> tensor<1x4x8x6xi1>
  %2 = "migraphx.where"(%1, %y, %0) : (tensor<1x4x8x6xi1>, tensor<1x4x8x6xf32>, tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  return %2 : tensor<1x4x8x6xf32>
}

// -----

// CHECK-LABEL: @to_last
// CHECK: "migraphx.relu"({{.*}}) : (tensor<1x6x4x8xf32>)
func.func @to_last(%x: tensor<1x8x6x4xf32>) -> tensor<1x6x4x8xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x8x6x4xf32>) -> tensor<1x6x4x8xf32>
  %1 = "migraphx.relu"(%0) : (tensor<1x6x4x8xf32>) -> tensor<1x6x4x8xf32>
  return %1 : tensor<1x6x4x8xf32>
}

// -----

// CHECK-LABEL: @rank_2
// CHECK: "migraphx.relu"({{.*}}) : (tensor<4x6xf32>)
func.func @rank_2(%x: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.relu"(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}
