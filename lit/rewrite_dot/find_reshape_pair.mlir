// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @pair
// CHECK-NEXT: %[[Y:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 3, 8>}
// CHECK-NEXT: return %[[Y]]
func.func @pair(%x: tensor<6x4xf32>) -> tensor<3x8xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 12>} : (tensor<6x4xf32>) -> tensor<2x12xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 3, 8>} : (tensor<2x12xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// -----

// CHECK-LABEL: @back
// CHECK-NEXT: return %arg0
func.func @back(%x: tensor<6x1x4xf32>) -> tensor<6x1x4xf32> {
  %0 = "migraphx.squeeze"(%x) {axes = array<i64: 1>} : (tensor<6x1x4xf32>) -> tensor<6x4xf32>
  %1 = "migraphx.flatten"(%0) {axis = 0 : i64} : (tensor<6x4xf32>) -> tensor<1x24xf32>
  %2 = "migraphx.reshape"(%1) {dims = array<i64: 6, 4>} : (tensor<1x24xf32>) -> tensor<6x4xf32>
  %3 = "migraphx.unsqueeze"(%2) {axes = array<i64: 1>} : (tensor<6x4xf32>) -> tensor<6x1x4xf32>
  return %3 : tensor<6x1x4xf32>
}

// -----

// CHECK-LABEL: @nothing
// CHECK-NEXT: return %arg0
func.func @nothing(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1, 4>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: -1, 2>} : (tensor<?x4xf32>) -> tensor<?x2xf32>
func.func @dynamic(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1, 2, 2>} : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: -1, 2>} : (tensor<?x2x2xf32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// Near misses: two run-time dims, an extent of 0, a lone reshape.
// CHECK-LABEL: @two_dynamic
// CHECK-COUNT-2: migraphx.reshape
func.func @two_dynamic(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %d = "migraphx.literal"() {value = dense<[2, -1, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = "migraphx.reshape"(%x, %d) {dims = array<i64>} : (tensor<?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 0, -1>} : (tensor<?x?x?xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: @empty
// CHECK-COUNT-2: migraphx.reshape
func.func @empty(%x: tensor<0x4xf32>) -> tensor<4x0xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, -1>} : (tensor<0x4xf32>) -> tensor<2x0xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 4, -1>} : (tensor<2x0xf32>) -> tensor<4x0xf32>
  return %1 : tensor<4x0xf32>
}

// -----

// CHECK-LABEL: @lone
// CHECK-NEXT: "migraphx.unsqueeze"(%arg0)
func.func @lone(%x: tensor<4xf32>) -> tensor<1x4xf32> {
  %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
