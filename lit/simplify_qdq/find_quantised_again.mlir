// RUN: mgx-opt %s --mgx-simplify-qdq=pairs=false --split-input-file | filecheck %s

// CHECK-LABEL: @reshaped
// CHECK-NEXT: %[[Y:.*]] = "migraphx.reshape"(%arg0) {{.*}} -> tensor<6xui8>
// CHECK-NEXT: return %[[Y]]
func.func @reshaped(%x: tensor<2x3xui8>) -> tensor<6xui8> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %z = "migraphx.literal"() {value = dense<7> : tensor<2x3xui8>} : () -> tensor<2x3xui8>
  %t = "migraphx.literal"() {value = dense<0.5> : tensor<6xf32>} : () -> tensor<6xf32>
  %y = "migraphx.literal"() {value = dense<7> : tensor<6xui8>} : () -> tensor<6xui8>
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<2x3xui8>, tensor<2x3xf32>, tensor<2x3xui8>) -> tensor<2x3xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %2 = "migraphx.quantizelinear"(%1, %t, %y) : (tensor<6xf32>, tensor<6xf32>, tensor<6xui8>) -> tensor<6xui8>
  return %2 : tensor<6xui8>
}

// -----

// CHECK-LABEL: @other_zero_point
// CHECK: "migraphx.dequantizelinear"
// CHECK: "migraphx.quantizelinear"
func.func @other_zero_point(%x: tensor<2xui8>) -> tensor<2xui8> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %z = "migraphx.literal"() {value = dense<7> : tensor<2xui8>} : () -> tensor<2xui8>
  %y = "migraphx.literal"() {value = dense<8> : tensor<2xui8>} : () -> tensor<2xui8>
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<2xui8>, tensor<2xf32>, tensor<2xui8>) -> tensor<2xf32>
  %1 = "migraphx.quantizelinear"(%0, %s, %y) : (tensor<2xf32>, tensor<2xf32>, tensor<2xui8>) -> tensor<2xui8>
  return %1 : tensor<2xui8>
}
