// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// Both reshaped from the same dims.
// CHECK-LABEL: @both
// CHECK: %[[A:.*]] = "migraphx.add"(%{{.*}}, %arg1) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: "migraphx.reshape"(%[[A]]) {dims = array<i64: 2, 2, 6>}
// CHECK-NEXT: return
func.func @both(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<2x2x6xf32> {
  %n = "migraphx.neg"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = "migraphx.contiguous"(%n) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %2 = "migraphx.reshape"(%y) {dims = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %3 = "migraphx.add"(%1, %2) : (tensor<2x2x6xf32>, tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  return %3 : tensor<2x2x6xf32>
}

// -----

// A bias is repeated along the rows of either.
// CHECK-LABEL: @bias
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%{{.*}}) {{.*}} -> tensor<4x3xf32>
// CHECK-NEXT: %[[A:.*]] = "migraphx.mul"(%[[B]], %{{.*}}) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: "migraphx.reshape"(%[[A]]) {dims = array<i64: 2, 2, 3>}
// CHECK-NEXT: return
func.func @bias(%x: tensor<4x5xf32>, %w: tensor<5x3xf32>) -> tensor<2x2x3xf32> {
  %c = "migraphx.literal"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 2, 3>} : (tensor<4x3xf32>) -> tensor<2x2x3xf32>
  %2 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 2, 3>} : (tensor<3xf32>) -> tensor<2x2x3xf32>
  %3 = "migraphx.mul"(%2, %1) : (tensor<2x2x3xf32>, tensor<2x2x3xf32>) -> tensor<2x2x3xf32>
  return %3 : tensor<2x2x3xf32>
}

// -----

// Near misses: an argument as it is, other dims below, another user, no kernel below.
// CHECK-LABEL: @stay
// CHECK: "migraphx.add"{{.*}} -> tensor<2x2x6xf32>
// CHECK: "migraphx.sub"{{.*}} -> tensor<2x2x6xf32>
// CHECK: "migraphx.mul"{{.*}} -> tensor<2x2x6xf32>
// CHECK: "migraphx.max"{{.*}} -> tensor<2x2x6xf32>
func.func @stay(%x: tensor<4x6xf32>, %y: tensor<2x2x6xf32>, %z: tensor<8x3xf32>) -> (tensor<2x2x6xf32>, tensor<2x2x6xf32>, tensor<2x2x6xf32>, tensor<2x2x6xf32>, tensor<2x2x6xf32>) {
  %n = "migraphx.neg"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = "migraphx.reshape"(%n) {dims = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %1 = "migraphx.add"(%0, %y) : (tensor<2x2x6xf32>, tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  %a = "migraphx.abs"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = "migraphx.reshape"(%a) {dims = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %3 = "migraphx.reshape"(%z) {dims = array<i64: 2, 2, 6>} : (tensor<8x3xf32>) -> tensor<2x2x6xf32>
  %4 = "migraphx.sub"(%2, %3) : (tensor<2x2x6xf32>, tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  %s = "migraphx.sqrt"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %5 = "migraphx.reshape"(%s) {dims = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %6 = "migraphx.mul"(%5, %5) : (tensor<2x2x6xf32>, tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  %7 = "migraphx.reshape"(%x) {dims = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %8 = "migraphx.max"(%7, %7) : (tensor<2x2x6xf32>, tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  return %1, %4, %5, %6, %8 : tensor<2x2x6xf32>, tensor<2x2x6xf32>, tensor<2x2x6xf32>, tensor<2x2x6xf32>, tensor<2x2x6xf32>
}
