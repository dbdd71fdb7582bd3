// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// CHECK-LABEL: @zero
// CHECK: %[[L:.*]] = "migraphx.literal"() {value = dense<0.000000e+00> : tensor<f32>}
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%[[L]])
// CHECK-NOT: migraphx.dequantizelinear
// CHECK: return %[[B]]
func.func @zero(%x: tensor<4xi8>) -> tensor<4xf32> {
  %s = "migraphx.literal"() {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<4xi8>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Near misses: one scale is not 0; f8 values, NaN among them.
// CHECK-LABEL: @another
// CHECK-COUNT-2: migraphx.dequantizelinear
func.func @another(%x: tensor<2xi8>, %y: tensor<2xf8E4M3FN>) -> (tensor<2xf32>, tensor<2xf32>) {
  %s = "migraphx.literal"() {value = dense<[0.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %t = "migraphx.literal"() {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<2xi8>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.dequantizelinear"(%y, %t) : (tensor<2xf8E4M3FN>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
