// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @both_ways
// CHECK: %[[Q:.*]] = "migraphx.quantizelinear"(%arg0, %arg1) {{.*}}out_type = i8{{.*}}(tensor<2xf32>, tensor<2xf32>) -> tensor<2xi8>
// CHECK-NEXT: "migraphx.dequantizelinear"(%[[Q]], %arg1) {{.*}}(tensor<2xi8>, tensor<2xf32>)
func.func @both_ways(%x: tensor<2xf32>, %s: tensor<2xf32>) -> tensor<2xf32> {
  %z = "migraphx.literal"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %b = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2>} : (tensor<i8>) -> tensor<2xi8>
  %0 = "migraphx.quantizelinear"(%x, %s, %b) : (tensor<2xf32>, tensor<2xf32>, tensor<2xi8>) -> tensor<2xi8>
  %1 = "migraphx.dequantizelinear"(%0, %s, %b) : (tensor<2xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Near misses: zero points of 1, and one that is not zero everywhere.
// CHECK-LABEL: @others
// CHECK: "migraphx.quantizelinear"(%arg0, %arg1, %{{[0-9]+}})
// CHECK-NEXT: "migraphx.dequantizelinear"(%{{[0-9]+}}, %arg1, %{{[0-9]+}})
func.func @others(%x: tensor<2xf32>, %s: tensor<2xf32>) -> tensor<2xf32> {
  %y = "migraphx.literal"() {value = dense<1> : tensor<2xi8>} : () -> tensor<2xi8>
  %z = "migraphx.literal"() {value = dense<[0, 1]> : tensor<2xi8>} : () -> tensor<2xi8>
  %0 = "migraphx.quantizelinear"(%x, %s, %y) : (tensor<2xf32>, tensor<2xf32>, tensor<2xi8>) -> tensor<2xi8>
  %1 = "migraphx.dequantizelinear"(%0, %s, %z) : (tensor<2xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
