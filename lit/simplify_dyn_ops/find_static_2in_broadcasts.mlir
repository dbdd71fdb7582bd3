// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @known
// CHECK-NEXT: %[[A:.*]] = "migraphx.multibroadcast"(%arg0) {{{.*}}out_lens = array<i64: 2, 3>}
// CHECK-NEXT: %[[B:.*]] = "migraphx.broadcast"(%arg2) {axis = 0 : i64, {{.*}}out_lens = array<i64: 2, 3>}
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @known(%x: tensor<3xf32>, %y: tensor<2x1xf32>, %z: tensor<2xf32>, %r: tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = "migraphx.multibroadcast"(%x, %y) {out_lens = array<i64>, out_dyn_dims = array<i64>} : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.broadcast"(%z, %r) {axis = 0 : i64, out_lens = array<i64>, out_dyn_dims = array<i64>} : (tensor<2xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// A near miss: an extent of the other operand is unknown.
// CHECK-LABEL: @open
// CHECK-NEXT: "migraphx.multibroadcast"(%arg0, %arg1)
func.func @open(%x: tensor<3xf32>, %y: tensor<?x1xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.multibroadcast"(%x, %y) {out_lens = array<i64>, out_dyn_dims = array<i64>} : (tensor<3xf32>, tensor<?x1xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
