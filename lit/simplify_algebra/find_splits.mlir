// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// The biases of joined projections.
// CHECK-LABEL: @biases
// CHECK: %[[B:.*]] = "migraphx.concat"
// CHECK-NEXT: %[[W:.*]] = "migraphx.multibroadcast"(%[[B]]) {{.*}}out_lens = array<i64: 2, 3>
// CHECK-NEXT: %[[A:.*]] = "migraphx.add"(%arg0, %[[W]])
// CHECK-NEXT: "migraphx.slice"(%[[A]]) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64: 0>}
// CHECK-NEXT: "migraphx.slice"(%[[A]]) {axes = array<i64: 1>, ends = array<i64: 3>, starts = array<i64: 2>}
// CHECK-NOT: migraphx.add
func.func @biases(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x1xf32>) {
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  %b = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %c = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 2>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %d = "migraphx.literal"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %e = "migraphx.multibroadcast"(%d) {out_lens = array<i64: 2, 1>} : (tensor<f32>) -> tensor<2x1xf32>
  %3 = "migraphx.add"(%1, %e) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %2 = "migraphx.add"(%0, %c) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2, %3 : tensor<2x2xf32>, tensor<2x1xf32>
}

// -----

// A reduction along another axis, parts of two tensors, and one value repeated.
// CHECK-LABEL: @others
// CHECK: %[[R:.*]] = "migraphx.reduce_sum"(%arg0) {axes = array<i64: 0>}
// CHECK: %[[P:.*]] = "migraphx.mul"(%arg0, %arg1)
// CHECK: %[[S:.*]] = "migraphx.multibroadcast"(%arg2) {{.*}}out_lens = array<i64: 3, 2>
// CHECK-NEXT: "migraphx.div"(%[[P]], %[[S]])
// CHECK-NOT: migraphx.div
func.func @others(%x: tensor<3x2xf32>, %y: tensor<3x2xf32>, %s: tensor<3x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<3x2xf32>) -> tensor<3x1xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<3x2xf32>) -> tensor<3x1xf32>
  %2 = "migraphx.slice"(%y) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 1>} : (tensor<3x2xf32>) -> tensor<3x1xf32>
  %3 = "migraphx.slice"(%y) {axes = array<i64: 1>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<3x2xf32>) -> tensor<3x1xf32>
  %4 = "migraphx.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<3x1xf32>) -> tensor<1x1xf32>
  %5 = "migraphx.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<3x1xf32>) -> tensor<1x1xf32>
  %6 = "migraphx.mul"(%0, %2) : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %7 = "migraphx.mul"(%1, %3) : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %8 = "migraphx.div"(%6, %s) : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %9 = "migraphx.div"(%7, %s) : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  return %4, %5, %8, %9 : tensor<1x1xf32>, tensor<1x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>
}

// -----

// Near misses: other functions of the parts (a gate), a part that nothing takes, a reduction
// along the axis that is cut.
// CHECK-LABEL: @gates
// CHECK: migraphx.slice
// CHECK-NEXT: migraphx.slice
// CHECK-NEXT: migraphx.sigmoid
// CHECK-NEXT: migraphx.tanh
func.func @gates(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.sigmoid"(%0) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "migraphx.tanh"(%1) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2, %3 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// CHECK-LABEL: @a_gap
// CHECK: migraphx.slice
// CHECK-NEXT: migraphx.slice
// CHECK-COUNT-2: migraphx.relu
func.func @a_gap(%x: tensor<2x5xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<2x5xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 3>, ends = array<i64: 5>} : (tensor<2x5xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.relu"(%0) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "migraphx.relu"(%1) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2, %3 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// CHECK-LABEL: @along
// CHECK: migraphx.slice
// CHECK-NEXT: migraphx.slice
// CHECK-COUNT-2: migraphx.reduce_max
func.func @along(%x: tensor<2x4xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 4>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.reduce_max"(%0) {axes = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2x1xf32>
  %3 = "migraphx.reduce_max"(%1) {axes = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2x1xf32>
  return %2, %3 : tensor<2x1xf32>, tensor<2x1xf32>
}
