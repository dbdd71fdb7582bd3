// RUN: mgx-opt %s --mgx-simplify-qdq=mixed=true --split-input-file | filecheck %s

// A ui8 first operand is multiplied as it is, and its zero point is taken off the sums.
// CHECK-LABEL: @dequantised
// CHECK-NOT: target_type = i16
// CHECK: %[[Q:.*]] = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK: "migraphx.reduce_sum"
// CHECK: %[[T:.*]] = "migraphx.sub"(%[[Q]],
// CHECK: "migraphx.dequantizelinear"(%[[T]],
func.func @dequantised(%x: tensor<2x3xui8>, %w: tensor<3x4xi8>) -> tensor<2x4xf32> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %z = "migraphx.literal"() {value = dense<128> : tensor<2x3xui8>} : () -> tensor<2x3xui8>
  %t = "migraphx.literal"() {value = dense<0.25> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
  %a = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<2x3xui8>, tensor<2x3xf32>, tensor<2x3xui8>) -> tensor<2x3xf32>
  %b = "migraphx.dequantizelinear"(%w, %t) : (tensor<3x4xi8>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @widened
// CHECK-NEXT: %[[Q:.*]] = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK-NEXT: return %[[Q]]
func.func @widened(%x: tensor<2x3xui8>, %w: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %a = "migraphx.convert"(%x) {target_type = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %b = "migraphx.convert"(%w) {target_type = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}
