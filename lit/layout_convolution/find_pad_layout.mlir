// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @border
// CHECK-NEXT: %[[P:.*]] = "migraphx.pad"(%arg0) {{.*}}pads = array<i64: 0, 1, 2, 0, 0, 3, 4, 0>
// CHECK-NEXT: "migraphx.transpose"(%[[P]])
func.func @border(%x: tensor<1x4x5x2xf32>) -> tensor<1x2x8x11xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x2xf32>) -> tensor<1x2x4x5xf32>
  %1 = "migraphx.pad"(%0) {pads = array<i64: 0, 0, 1, 2, 0, 0, 3, 4>} : (tensor<1x2x4x5xf32>) -> tensor<1x2x8x11xf32>
  return %1 : tensor<1x2x8x11xf32>
}

// -----

// CHECK-LABEL: @alone
// CHECK-NEXT: "migraphx.pad"(%arg0)
// CHECK-NEXT: return
func.func @alone(%x: tensor<1x2x4xf32>) -> tensor<1x2x5xf32> {
  %1 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 0, 0, 0>} : (tensor<1x2x4xf32>) -> tensor<1x2x5xf32>
  return %1 : tensor<1x2x5xf32>
}
