// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @twice
// CHECK-NEXT: %[[S:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 1, 4, 1, 5, 1, 3>}
// CHECK-NEXT: %[[W:.*]] = "migraphx.multibroadcast"(%[[S]]) {{.*}}out_lens = array<i64: 1, 4, 2, 5, 2, 3>
// CHECK-NEXT: %[[Y:.*]] = "migraphx.reshape"(%[[W]]) {dims = array<i64: 1, 8, 10, 3>}
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @twice(%x: tensor<1x4x5x3xf32>) -> tensor<1x3x8x10xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 1, 3, 4, 1, 5, 1>} : (tensor<1x3x4x5xf32>) -> tensor<1x3x4x1x5x1xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 1, 3, 4, 2, 5, 2>} : (tensor<1x3x4x1x5x1xf32>) -> tensor<1x3x4x2x5x2xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 1, 3, 8, 10>} : (tensor<1x3x4x2x5x2xf32>) -> tensor<1x3x8x10xf32>
  return %3 : tensor<1x3x8x10xf32>
}

// -----

// One axis, by an unsqueeze.
// CHECK-LABEL: @height
// CHECK: "migraphx.multibroadcast"({{.*}}out_lens = array<i64: 1, 4, 3, 5, 3>
func.func @height(%x: tensor<1x4x5x3xf32>) -> tensor<1x3x12x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = "migraphx.unsqueeze"(%0) {axes = array<i64: 3>} : (tensor<1x3x4x5xf32>) -> tensor<1x3x4x1x5xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 1, 3, 4, 3, 5>} : (tensor<1x3x4x1x5xf32>) -> tensor<1x3x4x3x5xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 1, 3, 12, 5>} : (tensor<1x3x4x3x5xf32>) -> tensor<1x3x12x5xf32>
  return %3 : tensor<1x3x12x5xf32>
}

// -----

// Near miss: whole lines are repeated, not elements.
// CHECK-LABEL: @tiles
// CHECK: "migraphx.multibroadcast"({{.*}}out_lens = array<i64: 1, 3, 2, 4, 5>
// CHECK-NEXT: "migraphx.reshape"
// CHECK-NEXT: return
func.func @tiles(%x: tensor<1x4x5x3xf32>) -> tensor<1x3x8x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 1, 3, 1, 4, 5>} : (tensor<1x3x4x5xf32>) -> tensor<1x3x1x4x5xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 1, 3, 2, 4, 5>} : (tensor<1x3x1x4x5xf32>) -> tensor<1x3x2x4x5xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 1, 3, 8, 5>} : (tensor<1x3x2x4x5xf32>) -> tensor<1x3x8x5xf32>
  return %3 : tensor<1x3x8x5xf32>
}
