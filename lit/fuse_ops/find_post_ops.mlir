// RUN: mgx-opt %s --mgx-fuse-ops --split-input-file | filecheck %s

// Bias, activation and residual go with the anchor.
// CHECK-LABEL: @epilogue
// CHECK-NEXT: %[[K:.*]] = "migraphx.group"({{.*}}) ({
// CHECK: migraphx.dot
// CHECK: migraphx.add
// CHECK: migraphx.relu
// CHECK: migraphx.add
// CHECK: }) {tag = "dot"}
// CHECK-NEXT: return %[[K]]
func.func @epilogue(%a: tensor<2x4xf32>, %b: tensor<4x3xf32>, %c: tensor<3xf32>, %r: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %d = "migraphx.dot"(%a, %b) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %w = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.add"(%d, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.relu"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.add"(%2, %r) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// -----

// A mover takes what follows, too.
// CHECK-LABEL: @transpose
// CHECK: migraphx.transpose
// CHECK-NEXT: migraphx.neg
// CHECK: tag = "transpose"
func.func @transpose(%a: tensor<2x4xf32>) -> tensor<4x2xf32> {
  %t = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %n = "migraphx.neg"(%t) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %n : tensor<4x2xf32>
}

// -----

// Near misses. A gather runs alone.
// CHECK-LABEL: @gather
// CHECK: tag = "gather"
// CHECK-NEXT: migraphx.neg
func.func @gather(%a: tensor<2x4xf32>, %i: tensor<3xi32>) -> tensor<3x4xf32> {
  %t = "migraphx.gather"(%a, %i) {axis = 0 : i64} : (tensor<2x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  %n = "migraphx.neg"(%t) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %n : tensor<3x4xf32>
}

// -----

// Other dims than the anchor's.
// CHECK-LABEL: @wider
// CHECK: tag = "dot"
// CHECK: "migraphx.add"(%arg2
func.func @wider(%a: tensor<2x4xf32>, %b: tensor<4x3xf32>, %r: tensor<5x2x3xf32>) -> tensor<5x2x3xf32> {
  %d = "migraphx.dot"(%a, %b) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %w = "migraphx.multibroadcast"(%d) {out_lens = array<i64: 5, 2, 3>} : (tensor<2x3xf32>) -> tensor<5x2x3xf32>
  %n = "migraphx.add"(%r, %w) : (tensor<5x2x3xf32>, tensor<5x2x3xf32>) -> tensor<5x2x3xf32>
  return %n : tensor<5x2x3xf32>
}
