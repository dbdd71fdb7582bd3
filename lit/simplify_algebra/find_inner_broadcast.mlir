// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @same
// CHECK: %[[S:.*]] = "migraphx.max"({{.*}}) : (tensor<1x3xf32>, tensor<1x3xf32>)
// CHECK-NEXT: "migraphx.multibroadcast"(%[[S]])
// CHECK-NEXT: return
func.func @same(%x: tensor<3xf32>, %y: tensor<1x3xf32>) -> tensor<4x3xf32> {
  %a = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %b = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 4, 3>} : (tensor<1x3xf32>) -> tensor<4x3xf32>
  %0 = "migraphx.max"(%a, %b) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// Different broadcasts that leave one axis alone, and a number.
// CHECK-LABEL: @outer_product
// CHECK: "migraphx.where"({{.*}}) : (tensor<2x1x3xi1>, tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x1x3xf32>
// CHECK-NEXT: "migraphx.multibroadcast"
// CHECK-NEXT: return
func.func @outer_product(%c: tensor<2x1x1xi1>, %x: tensor<3xf32>) -> tensor<2x5x3xf32> {
  %cb = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 5, 3>} : (tensor<2x1x1xi1>) -> tensor<2x5x3xi1>
  %xb = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 2, 5, 3>} : (tensor<3xf32>) -> tensor<2x5x3xf32>
  %z = "migraphx.literal"() {value = dense<4.0> : tensor<2x5x3xf32>} : () -> tensor<2x5x3xf32>
  %0 = "migraphx.where"(%cb, %xb, %z) : (tensor<2x5x3xi1>, tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  return %0 : tensor<2x5x3xf32>
}

// -----

// One operand, and an attribute.
// CHECK-LABEL: @unary
// CHECK: %[[C:.*]] = "migraphx.convert"({{.*}}) {target_type = f16} : (tensor<1x3xf32>) -> tensor<1x3xf16>
// CHECK-NEXT: "migraphx.multibroadcast"(%[[C]])
func.func @unary(%x: tensor<3xf32>) -> tensor<4x3xf16> {
  %a = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %0 = "migraphx.convert"(%a) {target_type = f16} : (tensor<4x3xf32>) -> tensor<4x3xf16>
  return %0 : tensor<4x3xf16>
}

// -----

// Near misses: together they vary along every axis; one operand is whole.
// CHECK-LABEL: @every_axis
// CHECK: "migraphx.add"({{.*}}) : (tensor<4x3xf32>, tensor<4x3xf32>)
func.func @every_axis(%x: tensor<3xf32>, %y: tensor<4x1xf32>) -> tensor<4x3xf32> {
  %a = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %b = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 4, 3>} : (tensor<4x1xf32>) -> tensor<4x3xf32>
  %0 = "migraphx.add"(%a, %b) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: @whole
// CHECK: "migraphx.add"({{.*}}) : (tensor<4x3xf32>, tensor<4x3xf32>)
func.func @whole(%x: tensor<3xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %a = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %0 = "migraphx.add"(%a, %y) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
