// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @known
// CHECK-NEXT: "migraphx.multibroadcast"(%arg0) {{{.*}}out_lens = array<i64: 2, 3, 4>}
// CHECK-NEXT: return
func.func @known(%a: tensor<3x4xf32>, %b: tensor<2x4x5xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.broadcast_for_dot"(%a, %b) : (tensor<3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// A near miss: the batch is known at run time only.
// CHECK-LABEL: @open
// CHECK-NEXT: migraphx.broadcast_for_dot
func.func @open(%a: tensor<3x4xf32>, %b: tensor<?x4x5xf32>) -> tensor<?x3x4xf32> {
  %0 = "migraphx.broadcast_for_dot"(%a, %b) : (tensor<3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}
