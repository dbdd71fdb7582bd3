// RUN: mgx-opt %s --mgx-auto-contiguous --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-auto-contiguous --mgx-eliminate-contiguous --split-input-file | filecheck %s --check-prefix=BACK

// BACK-NOT: migraphx.contiguous

// CHECK-LABEL: @views
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%arg0)
// CHECK-NEXT: %[[C:.*]] = "migraphx.contiguous"(%[[T]])
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[C]])
// CHECK-NEXT: %[[B:.*]] = "migraphx.multibroadcast"(%[[R]])
// CHECK-NEXT: %[[D:.*]] = "migraphx.contiguous"(%[[B]])
// CHECK-NEXT: return %[[D]]
func.func @views(%x: tensor<2x3xf32>) -> tensor<4x3x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.relu"(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 4, 3, 2>} : (tensor<3x2xf32>) -> tensor<4x3x2xf32>
  return %2 : tensor<4x3x2xf32>
}

// -----

// Near misses: row-major views, one element, unknown extents, an order that is asked for.
// CHECK-LABEL: @standard
// CHECK-NOT: migraphx.contiguous
// CHECK: return
func.func @standard(%x: tensor<2x3xf32>, %s: tensor<1xf32>, %d: tensor<?x3xf32>) -> (tensor<3x2xf32>, tensor<1x1xf32>, tensor<3x?xf32>, tensor<2x3xf32>) {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 3, 2>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 1, 1>} : (tensor<1xf32>) -> tensor<1x1xf32>
  %2 = "migraphx.transpose"(%d) {permutation = array<i64: 1, 0>} : (tensor<?x3xf32>) -> tensor<3x?xf32>
  %3 = "migraphx.layout"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1, %2, %3 : tensor<3x2xf32>, tensor<1x1xf32>, tensor<3x?xf32>, tensor<2x3xf32>
}
