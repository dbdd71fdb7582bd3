// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @square
// CHECK-NEXT: "migraphx.mul"(%arg0, %arg0)
// CHECK-NEXT: return
func.func @square(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @half
// CHECK: migraphx.pow
func.func @half(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<2.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @base
// CHECK: migraphx.pow
func.func @base(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%c, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
