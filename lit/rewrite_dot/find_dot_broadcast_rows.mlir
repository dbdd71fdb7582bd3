// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @linear
// CHECK-NEXT: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6, 4>}
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%[[X]], %arg1)
// CHECK-NEXT: "migraphx.reshape"(%[[D]]) {dims = array<i64: 2, 3, 5>}
func.func @linear(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 4, 5>} : (tensor<4x5xf32>) -> tensor<2x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// Near misses: a matrix for each batch, rank 2, dims known at run time.
// CHECK-LABEL: @batched
// CHECK-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @batched(%x: tensor<2x3x4xf32>, %w: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %1 = "migraphx.dot"(%x, %w) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// CHECK-LABEL: @matrix
// CHECK-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @matrix(%x: tensor<3x4xf32>, %w: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %1 = "migraphx.dot"(%x, %w) : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}

// -----

// CHECK-LABEL: @run_time
// CHECK: "migraphx.dot"(%arg0, %
func.func @run_time(%x: tensor<?x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<?x3x5xf32> {
  %0 = "migraphx.broadcast_for_dot"(%w, %x) : (tensor<4x5xf32>, tensor<?x3x4xf32>) -> tensor<?x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<?x3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x5xf32>
  return %1 : tensor<?x3x5xf32>
}
