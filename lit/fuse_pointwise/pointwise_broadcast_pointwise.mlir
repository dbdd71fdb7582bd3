// RUN: mgx-opt %s --mgx-fuse-pointwise --split-input-file | filecheck %s

// Few cheap ops on a small tensor are computed for each element.
// CHECK-LABEL: @cheap
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"({{.*}}) ({
// CHECK: "migraphx.add"({{.*}}) -> tensor<3xf32>
// CHECK: migraphx.multibroadcast
// CHECK: "migraphx.mul"({{.*}}) -> tensor<2x3xf32>
// CHECK: return %[[K]]
func.func @cheap(%x: tensor<2x3xf32>, %a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %s = "migraphx.add"(%a, %b) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %w = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %m = "migraphx.mul"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %m : tensor<2x3xf32>
}

// -----

// Near misses. An exponential is not computed again.
// CHECK-LABEL: @costly
// CHECK-COUNT-2: migraphx.pointwise
func.func @costly(%x: tensor<2x3xf32>, %a: tensor<3xf32>) -> tensor<2x3xf32> {
  %s = "migraphx.exp"(%a) : (tensor<3xf32>) -> tensor<3xf32>
  %w = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %m = "migraphx.mul"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %m : tensor<2x3xf32>
}

// -----

// The small tensor is a result.
// CHECK-LABEL: @used
// CHECK-COUNT-2: migraphx.pointwise
func.func @used(%x: tensor<2x3xf32>, %a: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
  %s = "migraphx.neg"(%a) : (tensor<3xf32>) -> tensor<3xf32>
  %w = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %m = "migraphx.mul"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %m, %s : tensor<2x3xf32>, tensor<3xf32>
}

// -----

// Five ops.
// CHECK-LABEL: @many
// CHECK-COUNT-2: migraphx.pointwise
func.func @many(%x: tensor<2x3xf32>, %a: tensor<3xf32>) -> tensor<2x3xf32> {
  %1 = "migraphx.neg"(%a) : (tensor<3xf32>) -> tensor<3xf32>
  %2 = "migraphx.abs"(%1) : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "migraphx.add"(%2, %a) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %4 = "migraphx.mul"(%3, %a) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %s = "migraphx.relu"(%4) : (tensor<3xf32>) -> tensor<3xf32>
  %w = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %m = "migraphx.mul"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %m : tensor<2x3xf32>
}
