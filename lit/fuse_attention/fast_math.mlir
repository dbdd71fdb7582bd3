// RUN: mgx-opt %s --mgx-fuse-attention=fast-math=true --split-input-file | filecheck %s

// Rows without keys: the zeros are put into the result.
// CHECK-LABEL: @guarded
// CHECK: migraphx.group
// CHECK: migraphx.softmax
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"
// CHECK: "migraphx.isnan"(%[[D]])
// CHECK: tag = "attention"
func.func @guarded(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %z = "migraphx.literal"() {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %zw = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 4, 6>} : (tensor<1xf32>) -> tensor<2x4x6xf32>
  %n = "migraphx.isnan"(%p) : (tensor<2x4x6xf32>) -> tensor<2x4x6xi1>
  %g = "migraphx.where"(%n, %zw, %p) : (tensor<2x4x6xi1>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%g, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// Not zeros but ones; the numbers the other way round.
// CHECK-LABEL: @other_number
// CHECK-NOT: migraphx.group
func.func @other_number(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %z = "migraphx.literal"() {value = dense<1.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %zw = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 4, 6>} : (tensor<1xf32>) -> tensor<2x4x6xf32>
  %n = "migraphx.isnan"(%p) : (tensor<2x4x6xf32>) -> tensor<2x4x6xi1>
  %g = "migraphx.where"(%n, %zw, %p) : (tensor<2x4x6xi1>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%g, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}
