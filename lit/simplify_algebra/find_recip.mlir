// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @one_by
// CHECK-NEXT: "migraphx.recip"(%arg0)
func.func @one_by(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%c, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: another number, integers.
// CHECK-LABEL: @two_by
// CHECK: migraphx.div
func.func @two_by(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%c, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
