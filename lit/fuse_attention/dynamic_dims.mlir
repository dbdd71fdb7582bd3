// RUN: mgx-opt %s --mgx-name-dynamic-dims --mgx-fuse-attention --mgx-forget-dynamic-dims --mgx-dead-code-elimination --split-input-file | filecheck %s

// The kernel keeps what its operands' dims have in common.
// CHECK-LABEL: @open
// CHECK: "migraphx.group"(%arg0, %{{[0-9]+}})
// CHECK: "migraphx.softmax"
// CHECK: }) {extents = ["d0, d1, 8", "d0, 1, d1"], tag = "attention"}
func.func @open(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %r = "migraphx.reduce_sum"(%x) {axes = array<i64: 2>} : (tensor<?x?x8xf32>) -> tensor<?x?x1xf32>
  %s = "migraphx.transpose"(%r) {permutation = array<i64: 0, 2, 1>} : (tensor<?x?x1xf32>) -> tensor<?x1x?xf32>
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32>) -> tensor<?x8x?xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<?x?x8xf32>, tensor<?x8x?xf32>) -> tensor<?x?x?xf32>
  %b = "migraphx.multibroadcast"(%s, %1) : (tensor<?x1x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %a = "migraphx.add"(%1, %b) : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %2 = "migraphx.softmax"(%a) {axis = 2 : i64} : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %3 = "migraphx.dot"(%2, %x) : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %3 : tensor<?x?x8xf32>
}

// -----

// The size of a head is open.
// CHECK-LABEL: @width
// CHECK: "migraphx.group"
func.func @width(%q: tensor<2x9x?xf32>, %k: tensor<2x9x?xf32>, %v: tensor<2x9x16xf32>) -> tensor<2x9x16xf32> {
  %0 = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x9x?xf32>) -> tensor<2x?x9xf32>
  %1 = "migraphx.dot"(%q, %0) : (tensor<2x9x?xf32>, tensor<2x?x9xf32>) -> tensor<2x9x9xf32>
  %2 = "migraphx.softmax"(%1) {axis = 2 : i64} : (tensor<2x9x9xf32>) -> tensor<2x9x9xf32>
  %3 = "migraphx.dot"(%2, %v) : (tensor<2x9x9xf32>, tensor<2x9x16xf32>) -> tensor<2x9x16xf32>
  return %3 : tensor<2x9x16xf32>
}
