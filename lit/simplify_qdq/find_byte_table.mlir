// RUN: mgx-opt %s --mgx-simplify-qdq="pairs=false tables=true" --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-simplify-qdq="pairs=false" --split-input-file | filecheck %s --check-prefix=OFF

// Half of each value, rounded to even: one table, whatever lies between.
// OFF-NOT: migraphx.byte_table
// CHECK-LABEL: @half
// CHECK-NEXT: %[[Y:.*]] = "migraphx.byte_table"(%arg0) {out_type = ui8, table = array<i64: 0, 0, 1, 2, 2, 2, 3, 4, 4, 4, 5,
// CHECK-NEXT: return %[[Y]]
func.func @half(%x: tensor<2x3xui8>) -> tensor<2x3xui8> {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %h = "migraphx.literal"() {value = dense<0.5> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x3xui8>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.mul"(%0, %h) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.relu"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.quantizelinear"(%2, %s) {out_type = ui8} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xui8>
  return %3 : tensor<2x3xui8>
}

// -----

// x * sigmoid(x), each with a scale of its own: both ways from x are in the table. -1 is last.
// CHECK-LABEL: @twice
// CHECK-NEXT: "migraphx.byte_table"(%arg0) {out_type = i8, table = array<i64: 0, 1, 4, 6, {{.*}}, 0, -1>} : (tensor<4xi8>) -> tensor<4xi8>
func.func @twice(%x: tensor<4xi8>) -> tensor<4xi8> {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %t = "migraphx.literal"() {value = dense<0.5> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<4xi8>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "migraphx.sigmoid"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "migraphx.quantizelinear"(%1, %t) {out_type = i8} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi8>
  %3 = "migraphx.dequantizelinear"(%2, %t) : (tensor<4xi8>, tensor<4xf32>) -> tensor<4xf32>
  %4 = "migraphx.mul"(%0, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = "migraphx.quantizelinear"(%4, %t) {out_type = i8} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi8>
  return %5 : tensor<4xi8>
}

// -----

// Near misses: two values of 8 bits; a factor for each column; sums of i32.
// CHECK-LABEL: @others
// CHECK-NOT: migraphx.byte_table
func.func @others(%x: tensor<2x2xi8>, %y: tensor<2x2xi8>, %i: tensor<2x2xi32>) -> (tensor<2x2xi8>, tensor<2x2xi8>, tensor<2x2xi8>) {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %w = "migraphx.literal"() {value = dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x2xi8>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dequantizelinear"(%y, %s) : (tensor<2x2xi8>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "migraphx.quantizelinear"(%2, %s) {out_type = i8} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi8>
  %4 = "migraphx.mul"(%0, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = "migraphx.quantizelinear"(%4, %s) {out_type = i8} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi8>
  %6 = "migraphx.dequantizelinear"(%i, %s) : (tensor<2x2xi32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %7 = "migraphx.quantizelinear"(%6, %s) {out_type = i8} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi8>
  return %3, %5, %7 : tensor<2x2xi8>, tensor<2x2xi8>, tensor<2x2xi8>
}
