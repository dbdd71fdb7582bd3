// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @along_an_axis
// CHECK-NEXT: "migraphx.broadcast"(%arg0) {axis = 3 : i64, {{.*}}out_lens = array<i64: 2, 4, 5, 3>
// CHECK-NEXT: return
func.func @along_an_axis(%x: tensor<3xf32>) -> tensor<2x4x5x3xf32> {
  %0 = "migraphx.broadcast"(%x) {axis = 1 : i64, out_lens = array<i64: 2, 3, 4, 5>} : (tensor<3xf32>) -> tensor<2x3x4x5xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  return %1 : tensor<2x4x5x3xf32>
}

// -----

// CHECK-LABEL: @one_element
// CHECK-NEXT: "migraphx.multibroadcast"(%arg0) {{.*}}out_lens = array<i64: 4, 3>
func.func @one_element(%x: tensor<1xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 3, 4>} : (tensor<1xf32>) -> tensor<3x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// Two axes that vary: the small tensor is transposed, then repeated.
// CHECK-LABEL: @two_axes
// CHECK: "migraphx.multibroadcast"(%{{.*}}) {{.*}}out_lens = array<i64: 4, 3, 2>
// CHECK-NEXT: return
func.func @two_axes(%x: tensor<3x4xf32>) -> tensor<4x3x2xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 2, 3, 4>} : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 2, 1, 0>} : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  return %1 : tensor<4x3x2xf32>
}

// -----

// Dims known at run time stay.
// CHECK-LABEL: @run_time
// CHECK: migraphx.multibroadcast
// CHECK-NEXT: migraphx.transpose
func.func @run_time(%x: tensor<4xf32>, %y: tensor<?x4xf32>) -> tensor<4x?xf32> {
  %0 = "migraphx.multibroadcast"(%x, %y) {out_lens = array<i64>} : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  return %1 : tensor<4x?xf32>
}
