// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// The bias has the scale of the sums: it is added to them.
// CHECK-LABEL: @bias
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"{{.*}} -> tensor<2x3xi32>
// CHECK: %[[T:.*]] = "migraphx.add"(%arg0, %[[B]]) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
// CHECK: %[[Y:.*]] = "migraphx.dequantizelinear"(%[[T]]
// CHECK-NEXT: return %[[Y]]
func.func @bias(%x: tensor<2x3xi32>) -> tensor<2x3xf32> {
  %s = "migraphx.literal"() {value = dense<[0.5, 0.25, 0.125]> : tensor<3xf32>} : () -> tensor<3xf32>
  %b = "migraphx.literal"() {value = dense<[7, 8, 9]> : tensor<3xi32>} : () -> tensor<3xi32>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %a = "migraphx.dequantizelinear"(%x, %sb) : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.dequantizelinear"(%b, %s) : (tensor<3xi32>, tensor<3xf32>) -> tensor<3xf32>
  %d = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.add"(%a, %d) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Another scale: added in f32.
// CHECK-LABEL: @other_scale
// CHECK: "migraphx.add"{{.*}} -> tensor<2x3xf32>
func.func @other_scale(%x: tensor<2x3xi32>) -> tensor<2x3xf32> {
  %s = "migraphx.literal"() {value = dense<[0.5, 0.25, 0.125]> : tensor<3xf32>} : () -> tensor<3xf32>
  %t = "migraphx.literal"() {value = dense<[0.5, 0.25, 0.126]> : tensor<3xf32>} : () -> tensor<3xf32>
  %b = "migraphx.literal"() {value = dense<[7, 8, 9]> : tensor<3xi32>} : () -> tensor<3xi32>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %a = "migraphx.dequantizelinear"(%x, %sb) : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.dequantizelinear"(%b, %t) : (tensor<3xi32>, tensor<3xf32>) -> tensor<3xf32>
  %d = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.add"(%a, %d) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
