// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @pair
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: 4, 6>}
// CHECK-NEXT: return
func.func @pair(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 24>} : (tensor<2x3x4xf32>) -> tensor<24xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 4, 6>} : (tensor<24xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: @back
// CHECK-NEXT: return %arg0
func.func @back(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
  %0 = "migraphx.squeeze"(%x) {axes = array<i64: 0>} : (tensor<1x3xf32>) -> tensor<3xf32>
  %1 = "migraphx.unsqueeze"(%0) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<1x3xf32>
  return %1 : tensor<1x3xf32>
}

// -----

// CHECK-LABEL: @run_time
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: migraphx.reshape
func.func @run_time(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1>} : (tensor<?x4xf32>) -> tensor<?xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: -1, 2>} : (tensor<?xf32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}
