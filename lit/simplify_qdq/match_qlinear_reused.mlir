// RUN: mgx-opt %s --mgx-simplify-qdq=reuse=true --split-input-file | filecheck %s

// (Whole numbers, which a scale of 1 keeps.)
// CHECK-LABEL: @reused
// CHECK: %[[Q:.*]] = "migraphx.quantizelinear"
// CHECK: %[[D:.*]] = "migraphx.dequantizelinear"(%[[Q]]
// CHECK: "migraphx.relu"(%[[D]])
func.func @reused(%x: tensor<4xi32>) -> (tensor<4xi8>, tensor<4xf32>) {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %f = "migraphx.convert"(%x) {target_type = f32} : (tensor<4xi32>) -> tensor<4xf32>
  %q = "migraphx.quantizelinear"(%f, %s) {out_type = i8} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi8>
  %0 = "migraphx.relu"(%f) : (tensor<4xf32>) -> tensor<4xf32>
  return %q, %0 : tensor<4xi8>, tensor<4xf32>
}

// -----

// Near misses: the other op comes before; it is no pointwise op.
// CHECK-LABEL: @before
// CHECK-NOT: migraphx.dequantizelinear
func.func @before(%x: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xf32>) {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "migraphx.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %q = "migraphx.quantizelinear"(%x, %s) {out_type = i8} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi8>
  return %q, %0 : tensor<4xi8>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @reduced
// CHECK-NOT: migraphx.dequantizelinear
func.func @reduced(%x: tensor<4xf32>) -> (tensor<4xi8>, tensor<1xf32>) {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %q = "migraphx.quantizelinear"(%x, %s) {out_type = i8} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi8>
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<1xf32>
  return %q, %0 : tensor<4xi8>, tensor<1xf32>
}
