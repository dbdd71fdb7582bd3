// RUN: mgx-opt %s --mgx-merge-steps --mgx-dead-code-elimination --split-input-file | filecheck %s

// A layer that is written out for three steps is done once.
// CHECK-LABEL: @steps
// CHECK: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: -1, 4>}
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%[[X]], %{{.*}}) : (tensor<?x4xf32>, tensor<4x5xf32>)
// CHECK: %[[R:.*]] = "migraphx.relu"
// CHECK-NEXT: %[[Y:.*]] = "migraphx.reshape"(%[[R]]) {dims = array<i64: 3, -1, 5>}
// CHECK-NEXT: return %[[Y]]
func.func @steps(%x: tensor<3x?x4xf32>) -> tensor<3x?x5xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<4x5xf32>} : () -> tensor<4x5xf32>
  %c0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s0 = "migraphx.squeeze"(%c0) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c1 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s1 = "migraphx.squeeze"(%c1) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c2 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s2 = "migraphx.squeeze"(%c2) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %d0 = "migraphx.dot"(%s0, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r0 = "migraphx.relu"(%d0) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u0 = "migraphx.unsqueeze"(%r0) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %d1 = "migraphx.dot"(%s1, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r1 = "migraphx.relu"(%d1) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u1 = "migraphx.unsqueeze"(%r1) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %d2 = "migraphx.dot"(%s2, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r2 = "migraphx.relu"(%d2) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u2 = "migraphx.unsqueeze"(%r2) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %y = "migraphx.concat"(%u0, %u1, %u2) {axis = 0 : i64} : (tensor<1x?x5xf32>, tensor<1x?x5xf32>, tensor<1x?x5xf32>) -> tensor<3x?x5xf32>
  return %y : tensor<3x?x5xf32>
}

// -----

// Stacked along another axis than they were cut from.
// CHECK-LABEL: @turned
// CHECK: migraphx.dot
// CHECK-NOT: migraphx.dot
// CHECK: "migraphx.transpose"(%{{.*}}) {permutation = array<i64: 1, 0, 2>}
func.func @turned(%x: tensor<3x?x4xf32>) -> tensor<?x3x5xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<4x5xf32>} : () -> tensor<4x5xf32>
  %c0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s0 = "migraphx.squeeze"(%c0) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c1 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s1 = "migraphx.squeeze"(%c1) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c2 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s2 = "migraphx.squeeze"(%c2) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %d0 = "migraphx.dot"(%s0, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %u0 = "migraphx.unsqueeze"(%d0) {axes = array<i64: 1>} : (tensor<?x5xf32>) -> tensor<?x1x5xf32>
  %d1 = "migraphx.dot"(%s1, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %u1 = "migraphx.unsqueeze"(%d1) {axes = array<i64: 1>} : (tensor<?x5xf32>) -> tensor<?x1x5xf32>
  %d2 = "migraphx.dot"(%s2, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %u2 = "migraphx.unsqueeze"(%d2) {axes = array<i64: 1>} : (tensor<?x5xf32>) -> tensor<?x1x5xf32>
  %y = "migraphx.concat"(%u0, %u1, %u2) {axis = 1 : i64} : (tensor<?x1x5xf32>, tensor<?x1x5xf32>, tensor<?x1x5xf32>) -> tensor<?x3x5xf32>
  return %y : tensor<?x3x5xf32>
}

// -----

// Near misses: the steps in another order, and less than all of them.
// CHECK-LABEL: @order
// CHECK-COUNT-3: migraphx.dot
func.func @order(%x: tensor<3x?x4xf32>) -> tensor<3x?x5xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<4x5xf32>} : () -> tensor<4x5xf32>
  %c0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s0 = "migraphx.squeeze"(%c0) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c1 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s1 = "migraphx.squeeze"(%c1) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c2 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s2 = "migraphx.squeeze"(%c2) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %d0 = "migraphx.dot"(%s0, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r0 = "migraphx.relu"(%d0) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u0 = "migraphx.unsqueeze"(%r0) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %d1 = "migraphx.dot"(%s1, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r1 = "migraphx.relu"(%d1) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u1 = "migraphx.unsqueeze"(%r1) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %d2 = "migraphx.dot"(%s2, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r2 = "migraphx.relu"(%d2) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u2 = "migraphx.unsqueeze"(%r2) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %y = "migraphx.concat"(%u1, %u0, %u2) {axis = 0 : i64} : (tensor<1x?x5xf32>, tensor<1x?x5xf32>, tensor<1x?x5xf32>) -> tensor<3x?x5xf32>
  return %y : tensor<3x?x5xf32>
}

// -----

// CHECK-LABEL: @some
// CHECK-COUNT-2: migraphx.dot
func.func @some(%x: tensor<3x?x4xf32>) -> tensor<2x?x5xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<4x5xf32>} : () -> tensor<4x5xf32>
  %c0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s0 = "migraphx.squeeze"(%c0) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c1 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s1 = "migraphx.squeeze"(%c1) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %c2 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<3x?x4xf32>) -> tensor<1x?x4xf32>
  %s2 = "migraphx.squeeze"(%c2) {axes = array<i64: 0>} : (tensor<1x?x4xf32>) -> tensor<?x4xf32>
  %d0 = "migraphx.dot"(%s0, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r0 = "migraphx.relu"(%d0) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u0 = "migraphx.unsqueeze"(%r0) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %d1 = "migraphx.dot"(%s1, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r1 = "migraphx.relu"(%d1) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u1 = "migraphx.unsqueeze"(%r1) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %d2 = "migraphx.dot"(%s2, %w) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
  %r2 = "migraphx.relu"(%d2) : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %u2 = "migraphx.unsqueeze"(%r2) {axes = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<1x?x5xf32>
  %y = "migraphx.concat"(%u0, %u1) {axis = 0 : i64} : (tensor<1x?x5xf32>, tensor<1x?x5xf32>) -> tensor<2x?x5xf32>
  return %y : tensor<2x?x5xf32>
}
