// RUN: mgx-opt %s --mgx-simplify-reshapes=op-shape-transform-op=true --split-input-file | filecheck %s

// Both pointwise ops in the dims of the first: the other operand is transposed back.
// CHECK-LABEL: @transposed_between
// CHECK: %[[Y:.*]] = "migraphx.transpose"(%arg1) {permutation = array<i64: 1, 0>}
// CHECK: %[[A:.*]] = "migraphx.add"(%{{.*}}, %[[Y]]) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: "migraphx.transpose"(%[[A]]) {permutation = array<i64: 1, 0>}
// CHECK-NEXT: return
func.func @transposed_between(%x: tensor<4x6xf32>, %y: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = "migraphx.add"(%1, %y) : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %2 : tensor<6x4xf32>
}

// -----

// Near misses: an operand is a kernel's result as it is, or none is; a broadcast has no way back.
// CHECK-LABEL: @stay
// CHECK: "migraphx.add"{{.*}} -> tensor<6x4xf32>
// CHECK: "migraphx.mul"{{.*}} -> tensor<6x4xf32>
// CHECK: "migraphx.max"{{.*}} -> tensor<6x4xf32>
func.func @stay(%x: tensor<4x6xf32>, %y: tensor<6x4xf32>, %z: tensor<6x1xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = "migraphx.neg"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = "migraphx.abs"(%y) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %3 = "migraphx.add"(%1, %2) : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %4 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %5 = "migraphx.mul"(%4, %y) : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %6 = "migraphx.sqrt"(%z) : (tensor<6x1xf32>) -> tensor<6x1xf32>
  %7 = "migraphx.multibroadcast"(%6) {out_lens = array<i64: 6, 4>} : (tensor<6x1xf32>) -> tensor<6x4xf32>
  %8 = "migraphx.max"(%7, %y) : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %3, %5, %8 : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}
