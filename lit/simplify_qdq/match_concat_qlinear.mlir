// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// Each part has its share of the scale; a zero point that is one number is repeated.
// CHECK-LABEL: @concat
// CHECK: %[[R:.*]] = "migraphx.relu"
// CHECK: %[[S:.*]] = "migraphx.slice"(%arg2) {{.*}}starts = array<i64: 0>
// CHECK: %[[A:.*]] = "migraphx.quantizelinear"(%[[R]], %[[S]]
// CHECK: %[[T:.*]] = "migraphx.slice"(%arg2) {{.*}}starts = array<i64: 2>
// CHECK: %[[B:.*]] = "migraphx.quantizelinear"(%arg1, %[[T]]
// CHECK: %[[C:.*]] = "migraphx.concat"(%[[A]], %[[B]])
// CHECK-NEXT: return %[[C]]
func.func @concat(%x: tensor<2xf32>, %y: tensor<3xf32>, %s: tensor<5xf32>) -> tensor<5xi8> {
  %z = "migraphx.literal"() {value = dense<1> : tensor<5xi8>} : () -> tensor<5xi8>
  %r = "migraphx.relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %c = "migraphx.concat"(%r, %y) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %q = "migraphx.quantizelinear"(%c, %s, %z) : (tensor<5xf32>, tensor<5xf32>, tensor<5xi8>) -> tensor<5xi8>
  return %q : tensor<5xi8>
}

// -----

// Near misses: no part is computed; the concat has another use.
// CHECK-LABEL: @arguments
// CHECK: %[[C:.*]] = "migraphx.concat"
// CHECK-NEXT: "migraphx.quantizelinear"(%[[C]]
func.func @arguments(%x: tensor<2xf32>, %y: tensor<3xf32>, %s: tensor<5xf32>) -> tensor<5xui8> {
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %q = "migraphx.quantizelinear"(%c, %s) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xui8>
  return %q : tensor<5xui8>
}

// -----

// CHECK-LABEL: @used
// CHECK: %[[C:.*]] = "migraphx.concat"
// CHECK-NEXT: "migraphx.quantizelinear"(%[[C]]
func.func @used(%x: tensor<2xf32>, %y: tensor<3xf32>, %s: tensor<5xf32>) -> (tensor<5xui8>, tensor<5xf32>) {
  %r = "migraphx.relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %c = "migraphx.concat"(%r, %y) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %q = "migraphx.quantizelinear"(%c, %s) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xui8>
  return %q, %c : tensor<5xui8>, tensor<5xf32>
}
