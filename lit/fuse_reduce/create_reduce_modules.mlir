// RUN: mgx-opt %s --mgx-fuse-reduce --split-input-file | filecheck %s

// A kernel of one reduction; no axes stated means all of them. A softmax is one too.
// CHECK-LABEL: @one
// CHECK-NEXT: "migraphx.fused_reduce"(%arg0) ({
// CHECK: migraphx.reduce_sum
// CHECK: }) {axes = array<i64: 0, 1>}
func.func @one(%x: tensor<2x3xi32>) -> tensor<1x1xi32> {
  %r = "migraphx.reduce_sum"(%x) {axes = array<i64>} : (tensor<2x3xi32>) -> tensor<1x1xi32>
  return %r : tensor<1x1xi32>
}

// -----

// CHECK-LABEL: @softmax
// CHECK-NEXT: "migraphx.fused_reduce"(%arg0) ({
// CHECK: migraphx.logsoftmax
// CHECK: }) {axes = array<i64: 1>}
func.func @softmax(%x: tensor<?x3xf16>) -> tensor<?x3xf16> {
  %r = "migraphx.logsoftmax"(%x) {axis = -1 : i64} : (tensor<?x3xf16>) -> tensor<?x3xf16>
  return %r : tensor<?x3xf16>
}

// -----

// Near misses: no rows; no reduction of the list.
// CHECK-LABEL: @empty
// CHECK-NOT: migraphx.fused_reduce
func.func @empty(%x: tensor<0x3xf32>) -> tensor<1x3xf32> {
  %r = "migraphx.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<0x3xf32>) -> tensor<1x3xf32>
  return %r : tensor<1x3xf32>
}

// -----

// CHECK-LABEL: @other
// CHECK-NOT: migraphx.fused_reduce
func.func @other(%x: tensor<2x3xf32>) -> tensor<2x1xi64> {
  %r = "migraphx.argmax"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xi64>
  return %r : tensor<2x1xi64>
}
