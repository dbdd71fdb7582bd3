// RUN: mgx-opt %s --mgx-simplify-qdq=pairs=false --split-input-file | filecheck %s

// The largest is pooled in 8 bits, and scale and zero point are those it had.
// CHECK-LABEL: @max
// CHECK-NEXT: %[[Y:.*]] = "migraphx.pooling"(%arg0) {{.*}} -> tensor<1x2x2x2xi8>
// CHECK-NEXT: return %[[Y]]
func.func @max(%x: tensor<1x2x4x4xi8>) -> tensor<1x2x2x2xi8> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<1x2x4x4xf32>} : () -> tensor<1x2x4x4xf32>
  %t = "migraphx.literal"() {value = dense<0.5> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %z = "migraphx.literal"() {value = dense<0> : tensor<1x2x2x2xi8>} : () -> tensor<1x2x2x2xi8>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>, stride = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %2 = "migraphx.quantizelinear"(%1, %t, %z) : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xi8>
  return %2 : tensor<1x2x2x2xi8>
}

// -----

// CHECK-LABEL: @average
// CHECK: "migraphx.dequantizelinear"
// CHECK-NEXT: "migraphx.pooling"{{.*}} -> tensor<1x2x2x2xf32>
func.func @average(%x: tensor<1x2x4x4xi8>) -> tensor<1x2x2x2xf32> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<1x2x4x4xf32>} : () -> tensor<1x2x4x4xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %1 = "migraphx.pooling"(%0) {mode = "average", lengths = array<i64: 2, 2>, stride = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  return %1 : tensor<1x2x2x2xf32>
}
