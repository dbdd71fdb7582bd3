// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// One factor for each row of the weights: next to the dot it goes into them.
// CHECK-LABEL: @scale
// CHECK: %[[T:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 1, 0>}
// CHECK: %[[M:.*]] = "migraphx.mul"(%[[T]], %{{.*}})
// CHECK-NEXT: "migraphx.dot"(%[[M]], %{{.*}})
func.func @scale(%x: tensor<2x3xf32>) -> tensor<3x1xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %c = "migraphx.literal"() {value = dense<[[2.0], [3.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %0 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.mul"(%0, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %3 = "migraphx.dot"(%2, %w) : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
  return %3 : tensor<3x1xf32>
}

// -----

// A sum, on the right.
// CHECK-LABEL: @shift
// CHECK: %[[T:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 1, 0>}
// CHECK: %[[M:.*]] = "migraphx.add"(%[[T]], %{{.*}})
// CHECK-NEXT: "migraphx.dot"(%{{.*}}, %[[M]])
func.func @shift(%x: tensor<3x2xf32>) -> tensor<1x3xf32> {
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %c = "migraphx.literal"() {value = dense<[[2.0, 1.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %1 = "migraphx.add"(%x, %c) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.dot"(%w, %2) : (tensor<1x2xf32>, tensor<2x3xf32>) -> tensor<1x3xf32>
  return %3 : tensor<1x3xf32>
}

// -----

// Near misses: factors along the columns, weights that are not constant, a 16-bit product that
// would be rounded once less (fast-math takes it).
// CHECK-LABEL: @stay
// CHECK: %[[M:.*]] = "migraphx.mul"(%arg0
// CHECK: %[[T:.*]] = "migraphx.transpose"(%[[M]])
// CHECK: "migraphx.dot"(%[[T]]
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0
// CHECK: %[[U:.*]] = "migraphx.transpose"(%[[A]])
// CHECK: "migraphx.dot"(%[[U]]
// CHECK: %[[H:.*]] = "migraphx.mul"(%arg2
// CHECK: %[[C:.*]] = "migraphx.convert"(%[[H]])
// CHECK: "migraphx.dot"(%[[C]]
func.func @stay(%x: tensor<2x3xf32>, %v: tensor<2x1xf32>, %h: tensor<1x2xf16>) -> (tensor<3x1xf32>, tensor<3x1xf32>, tensor<1x1xf32>) {
  %w = "migraphx.literal"() {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %c = "migraphx.literal"() {value = dense<[2.0, 3.0, 4.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %e = "migraphx.literal"() {value = dense<[[2.0, 3.0]]> : tensor<1x2xf16>} : () -> tensor<1x2xf16>
  %0 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.mul"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %3 = "migraphx.dot"(%2, %w) : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
  %4 = "migraphx.add"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = "migraphx.transpose"(%4) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %6 = "migraphx.dot"(%5, %v) : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
  %7 = "migraphx.mul"(%h, %e) : (tensor<1x2xf16>, tensor<1x2xf16>) -> tensor<1x2xf16>
  %8 = "migraphx.convert"(%7) {target_type = f32} : (tensor<1x2xf16>) -> tensor<1x2xf32>
  %9 = "migraphx.dot"(%8, %w) : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
  return %3, %6, %9 : tensor<3x1xf32>, tensor<3x1xf32>, tensor<1x1xf32>
}
