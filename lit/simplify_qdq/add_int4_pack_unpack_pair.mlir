// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// The zero point is 4-bit data, so the model means 4 bits. (What uses it in 8 bits keeps the pair.)
// CHECK-LABEL: @four_bits
// CHECK: %[[Q:.*]] = "migraphx.quantizelinear"
// CHECK: %[[P:.*]] = "migraphx.pack_int4"(%[[Q]])
// CHECK: %[[U:.*]] = "migraphx.unpack_int4"(%[[P]])
// CHECK: "migraphx.dequantizelinear"(%[[U]]
func.func @four_bits(%x: tensor<3x2xf32>) -> (tensor<3x2xi8>, tensor<3x2xf32>) {
  %z = "migraphx.literal"() {value = dense<17> : tensor<1xi8>} : () -> tensor<1xi8>
  %u = "migraphx.unpack_int4"(%z) : (tensor<1xi8>) -> tensor<2xi8>
  %zb = "migraphx.multibroadcast"(%u) {out_lens = array<i64: 3, 2>} : (tensor<2xi8>) -> tensor<3x2xi8>
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %q = "migraphx.quantizelinear"(%x, %s, %zb) : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xi8>) -> tensor<3x2xi8>
  %0 = "migraphx.dequantizelinear"(%q, %s, %zb) : (tensor<3x2xi8>, tensor<3x2xf32>, tensor<3x2xi8>) -> tensor<3x2xf32>
  return %q, %0 : tensor<3x2xi8>, tensor<3x2xf32>
}

// -----

// Near misses: 8-bit parameters; an odd number of columns.
// CHECK-LABEL: @eight_bits
// CHECK-NOT: migraphx.pack_int4
func.func @eight_bits(%x: tensor<3x2xf32>, %z: tensor<3x2xi8>, %s: tensor<3x2xf32>) -> (tensor<3x2xi8>, tensor<3x2xf32>) {
  %q = "migraphx.quantizelinear"(%x, %s, %z) : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xi8>) -> tensor<3x2xi8>
  %0 = "migraphx.dequantizelinear"(%q, %s, %z) : (tensor<3x2xi8>, tensor<3x2xf32>, tensor<3x2xi8>) -> tensor<3x2xf32>
  return %q, %0 : tensor<3x2xi8>, tensor<3x2xf32>
}

// -----

// CHECK-LABEL: @odd
// CHECK-NOT: migraphx.pack_int4
func.func @odd(%x: tensor<2x1xf32>, %s: tensor<2x1xf32>) -> (tensor<2x1xi8>, tensor<2x1xf32>) {
  %z = "migraphx.literal"() {value = dense<17> : tensor<1x1xi8>} : () -> tensor<1x1xi8>
  %u = "migraphx.unpack_int4"(%z) {axis = 0 : i64} : (tensor<1x1xi8>) -> tensor<2x1xi8>
  %q = "migraphx.quantizelinear"(%x, %s, %u) : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xi8>) -> tensor<2x1xi8>
  %0 = "migraphx.dequantizelinear"(%q, %s, %u) : (tensor<2x1xi8>, tensor<2x1xf32>, tensor<2x1xi8>) -> tensor<2x1xf32>
  return %q, %0 : tensor<2x1xi8>, tensor<2x1xf32>
}
