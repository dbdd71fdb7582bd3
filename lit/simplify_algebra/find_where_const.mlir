// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @never
// CHECK-NEXT: return %arg1
func.func @never(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = "migraphx.literal"() {value = dense<false> : tensor<2x1xi1>} : () -> tensor<2x1xi1>
  %0 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3>} : (tensor<2x1xi1>) -> tensor<2x3xi1>
  %1 = "migraphx.where"(%0, %a, %b) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @always
// CHECK-NEXT: return %arg0
func.func @always(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %c = "migraphx.literal"() {value = dense<true> : tensor<3xi1>} : () -> tensor<3xi1>
  %1 = "migraphx.where"(%c, %a, %b) : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// CHECK-LABEL: @sometimes
// CHECK: migraphx.where
func.func @sometimes(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
  %1 = "migraphx.where"(%c, %a, %b) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @unknown
// CHECK: migraphx.where
func.func @unknown(%c: tensor<2xi1>, %a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %1 = "migraphx.where"(%c, %a, %b) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
