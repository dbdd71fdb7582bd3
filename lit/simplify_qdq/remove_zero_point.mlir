// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// CHECK-LABEL: @zero
// CHECK: "migraphx.dequantizelinear"(%arg0, %arg1) : (tensor<4xi8>, tensor<4xf32>)
func.func @zero(%x: tensor<4xi8>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %z = "migraphx.literal"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 4>} : (tensor<i8>) -> tensor<4xi8>
  %0 = "migraphx.dequantizelinear"(%x, %s, %zb) : (tensor<4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Near misses: one number is not 0; it is not known.
// CHECK-LABEL: @another
// CHECK: "migraphx.dequantizelinear"(%arg0, %arg1, %
// CHECK: "migraphx.dequantizelinear"(%arg0, %arg1, %arg2)
func.func @another(%x: tensor<4xi8>, %s: tensor<4xf32>, %y: tensor<4xi8>) -> (tensor<4xf32>, tensor<4xf32>) {
  %z = "migraphx.literal"() {value = dense<[0, 0, 0, 1]> : tensor<4xi8>} : () -> tensor<4xi8>
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  %1 = "migraphx.dequantizelinear"(%x, %s, %y) : (tensor<4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
