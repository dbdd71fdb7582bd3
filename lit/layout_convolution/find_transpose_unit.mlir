// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @pooled
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: 2, 5, 1, 1>}
func.func @pooled(%x: tensor<2x1x1x5xf32>) -> tensor<2x5x1x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x1x1x5xf32>) -> tensor<2x5x1x1xf32>
  return %0 : tensor<2x5x1x1xf32>
}

// -----

// CHECK-LABEL: @one_channel
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: 2, 4, 5, 1>}
func.func @one_channel(%x: tensor<2x1x4x5xf32>) -> tensor<2x4x5x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x1x4x5xf32>) -> tensor<2x4x5x1xf32>
  return %0 : tensor<2x4x5x1xf32>
}

// -----

// Near misses: two extents change places, run-time dims.
// CHECK-LABEL: @moves
// CHECK-NEXT: "migraphx.transpose"(%arg0)
func.func @moves(%x: tensor<1x2x1x5xf32>) -> tensor<1x5x1x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 2, 1>} : (tensor<1x2x1x5xf32>) -> tensor<1x5x1x2xf32>
  return %0 : tensor<1x5x1x2xf32>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK-NEXT: "migraphx.transpose"(%arg0)
func.func @dynamic(%x: tensor<?x1x1x5xf32>) -> tensor<?x5x1x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x1x1x5xf32>) -> tensor<?x5x1x1xf32>
  return %0 : tensor<?x5x1x1xf32>
}

// -----

// A 0 among a reshape's dims stands for the input's extent.
// CHECK-LABEL: @nothing
// CHECK-NEXT: migraphx.transpose
func.func @nothing(%x: tensor<1x1x0xf32>) -> tensor<1x0x1xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<1x1x0xf32>) -> tensor<1x0x1xf32>
  return %0 : tensor<1x0x1xf32>
}
