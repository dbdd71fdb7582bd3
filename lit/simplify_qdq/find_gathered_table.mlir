// RUN: mgx-opt %s --mgx-simplify-qdq=pairs=false --split-input-file | filecheck %s

// One number: the two rows are looked up in 8 bits, then dequantised.
// CHECK-LABEL: @one_scale
// CHECK: %[[R:.*]] = "migraphx.gather"(%{{.*}}, %arg0) {{.*}} -> tensor<2x3xi8>
// CHECK: "migraphx.dequantizelinear"(%[[R]], %{{.*}}, %{{.*}}) : (tensor<2x3xi8>, tensor<2x3xf32>, tensor<2x3xi8>)
func.func @one_scale(%i: tensor<2xi64>) -> tensor<2x3xf32> {
  %x = "migraphx.literal"() {value = dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 1, 2]]> : tensor<4x3xi8>} : () -> tensor<4x3xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<4x3xf32>} : () -> tensor<4x3xf32>
  %z = "migraphx.literal"() {value = dense<3> : tensor<4x3xi8>} : () -> tensor<4x3xi8>
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<4x3xi8>, tensor<4x3xf32>, tensor<4x3xi8>) -> tensor<4x3xf32>
  %1 = "migraphx.gather"(%0, %i) {axis = 0 : i64} : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// A scale for each row is looked up like the rows.
// CHECK-LABEL: @by_rows
// CHECK-DAG: %[[R:.*]] = "migraphx.gather"(%{{.*}}, %arg0) {{.*}} -> tensor<1x2x3xi8>
// CHECK-DAG: %[[S:.*]] = "migraphx.gather"(%{{.*}}, %arg0) {{.*}} : (tensor<4xf32>, tensor<1x2xi64>) -> tensor<1x2xf32>
// CHECK: "migraphx.dequantizelinear"(%[[R]], %{{.*}}) : (tensor<1x2x3xi8>, tensor<1x2x3xf32>)
func.func @by_rows(%i: tensor<1x2xi64>) -> tensor<1x2x3xf32> {
  %x = "migraphx.literal"() {value = dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 1, 2]]> : tensor<4x3xi8>} : () -> tensor<4x3xi8>
  %t = "migraphx.literal"() {value = dense<[0.5, 0.25, 1.0, 2.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %s = "migraphx.broadcast"(%t) {axis = 0 : i64, out_lens = array<i64: 4, 3>} : (tensor<4xf32>) -> tensor<4x3xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<4x3xi8>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "migraphx.gather"(%0, %i) {axis = 0 : i64} : (tensor<4x3xf32>, tensor<1x2xi64>) -> tensor<1x2x3xf32>
  return %1 : tensor<1x2x3xf32>
}

// -----

// A scale for each column is repeated over the rows.
// CHECK-LABEL: @by_columns
// CHECK-NOT: -> tensor<4x3xf32>
// CHECK: "migraphx.dequantizelinear"(%{{.*}}, %{{.*}}) : (tensor<2x3xi8>, tensor<2x3xf32>)
func.func @by_columns(%i: tensor<2xi64>) -> tensor<2x3xf32> {
  %x = "migraphx.literal"() {value = dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 1, 2]]> : tensor<4x3xi8>} : () -> tensor<4x3xi8>
  %t = "migraphx.literal"() {value = dense<[0.5, 0.25, 1.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %s = "migraphx.broadcast"(%t) {axis = 1 : i64, out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<4x3xi8>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "migraphx.gather"(%0, %i) {axis = 0 : i64} : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// Near misses: more is looked up than the table has; the table is computed.
// CHECK-LABEL: @more
// CHECK: "migraphx.gather"(%{{.*}}, %arg0) {{.*}} -> tensor<3x2xf32>
func.func @more(%i: tensor<3xi64>, %y: tensor<4x2xi8>, %j: tensor<2xi64>) -> (tensor<3x2xf32>, tensor<2x2xf32>) {
  %x = "migraphx.literal"() {value = dense<[[1, 2], [4, 5]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %t = "migraphx.literal"() {value = dense<0.5> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x2xi8>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.gather"(%0, %i) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  // CHECK: "migraphx.gather"(%{{.*}}, %arg2) {{.*}} -> tensor<2x2xf32>
  %2 = "migraphx.dequantizelinear"(%y, %t) : (tensor<4x2xi8>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = "migraphx.gather"(%2, %j) {axis = 0 : i64} : (tensor<4x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %1, %3 : tensor<3x2xf32>, tensor<2x2xf32>
}
