// RUN: mgx-opt %s --mgx-fuse-ops --split-input-file | filecheck %s

// An anchor alone.
// CHECK-LABEL: @dot
// CHECK-NEXT: %[[K:.*]] = "migraphx.group"(%arg0, %arg1) ({
// CHECK: migraphx.dot
// CHECK: }) {tag = "dot"}
// CHECK-NEXT: return %[[K]]
func.func @dot(%a: tensor<2x4xf32>, %b: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %d = "migraphx.dot"(%a, %b) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %d : tensor<2x3xf32>
}

// -----

// Movers and gathers too.
// CHECK-LABEL: @movers
// CHECK: tag = "transpose"
// CHECK: tag = "gather"
func.func @movers(%a: tensor<2x4xf32>, %i: tensor<3xi32>) -> tensor<3x2xf32> {
  %t = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %g = "migraphx.gather"(%t, %i) {axis = 0 : i64} : (tensor<4x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
  return %g : tensor<3x2xf32>
}

// -----

// Near misses: one row is a copy; no elements; no anchor.
// CHECK-LABEL: @row
// CHECK-NOT: migraphx.group
func.func @row(%a: tensor<2x4xf32>, %i: tensor<1xi32>) -> tensor<1x4xf32> {
  %g = "migraphx.gather"(%a, %i) {axis = 0 : i64} : (tensor<2x4xf32>, tensor<1xi32>) -> tensor<1x4xf32>
  return %g : tensor<1x4xf32>
}

// -----

// CHECK-LABEL: @empty
// CHECK-NOT: migraphx.group
func.func @empty(%a: tensor<0x4xf32>, %b: tensor<4x3xf32>) -> tensor<0x3xf32> {
  %d = "migraphx.dot"(%a, %b) : (tensor<0x4xf32>, tensor<4x3xf32>) -> tensor<0x3xf32>
  return %d : tensor<0x3xf32>
}

// -----

// CHECK-LABEL: @other
// CHECK-NOT: migraphx.group
func.func @other(%a: tensor<2x4xf32>) -> tensor<2x1xf32> {
  %r = "migraphx.relu"(%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %d = "migraphx.reduce_sum"(%r) {axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  return %d : tensor<2x1xf32>
}
