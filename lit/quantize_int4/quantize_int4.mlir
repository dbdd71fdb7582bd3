// RUN: mgx-opt %s --mgx-quantize-int4 --split-input-file | filecheck %s

// One step is 15 parts of the range, which holds 0: here 1, with 5 for 0.
// CHECK-LABEL: @weights
// CHECK: dense<1.000000e+00> : tensor<f32>
// CHECK: dense<5> : tensor<ui8>
// CHECK: %[[Q:.*]] = "migraphx.quantizelinear"
// CHECK: %[[P:.*]] = "migraphx.pack_int4"(%[[Q]]) {{.*}} -> tensor<2x1xui8>
// CHECK: %[[U:.*]] = "migraphx.unpack_int4"(%[[P]])
// CHECK: %[[D:.*]] = "migraphx.dequantizelinear"(%[[U]]
// CHECK: "migraphx.dot"(%arg0, %[[D]])
func.func @weights(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[-5.0, 10.0], [3.0, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Near misses: an odd last extent; an argument; a literal that no listed op multiplies.
// CHECK-LABEL: @stay
// CHECK-NOT: migraphx.pack_int4
func.func @stay(%x: tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x2xf32>) {
  %w = "migraphx.literal"() {value = dense<[[-5.0], [3.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %v = "migraphx.literal"() {value = dense<2.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.transpose"(%w) {permutation = array<i64: 1, 0>} : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %1 = "migraphx.dot"(%w, %0) : (tensor<2x1xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.add"(%1, %v) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "migraphx.dot"(%2, %x) : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  return %3, %2 : tensor<2x1xf32>, tensor<2x2xf32>
}
