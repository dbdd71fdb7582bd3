// RUN: mgx-opt %s --mgx-fp8-ocp-to-fnuz --split-input-file | filecheck %s

// The bits are kept but for -0 and NaN, the scale doubles.
// CHECK-LABEL: @dot
// CHECK: "migraphx.bit_cast"(%arg0) {target_type = ui8}
// CHECK: value = dense<127> : tensor<ui8>
// CHECK: value = dense<255> : tensor<ui8>
// CHECK: value = dense<128> : tensor<ui8>
// CHECK: %[[X:.*]] = "migraphx.bit_cast"({{.*}}) {target_type = f8E4M3FNUZ}
// CHECK: %[[A:.*]] = "migraphx.dequantizelinear"(%[[X]]
// CHECK: %[[W:.*]] = "migraphx.bit_cast"({{.*}}) {target_type = f8E4M3FNUZ}
// CHECK: %[[B:.*]] = "migraphx.dequantizelinear"(%[[W]]
// CHECK: %[[T:.*]] = "migraphx.transpose"(%[[B]])
// CHECK: "migraphx.dot"(%[[A]], %[[T]])
func.func @dot(%x: tensor<2x3xf8E4M3FN>, %w: tensor<2x3xf8E4M3FN>, %s: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %a = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x3xf8E4M3FN>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "migraphx.dequantizelinear"(%w, %s) : (tensor<2x3xf8E4M3FN>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.transpose"(%b) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %0 = "migraphx.dot"(%a, %c) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Near misses: another f8 type; one operand only.
// CHECK-LABEL: @other
// CHECK-NOT: migraphx.bit_cast
func.func @other(%x: tensor<2x2xf8E5M2>, %w: tensor<2x2xf8E4M3FN>, %s: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x2xf8E5M2>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = "migraphx.dequantizelinear"(%w, %s) : (tensor<2x2xf8E4M3FN>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%a, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%s, %b) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// What is rounded to f8E4M3FN is rounded to f8E4M3FNUZ at once, up to 448; constants are converted.
// CHECK-LABEL: @rounded
// CHECK: %[[C:.*]] = "migraphx.clip"
// CHECK: %[[Q:.*]] = "migraphx.quantizelinear"(%[[C]], {{.*}}) {out_type = f8E4M3FNUZ}
// CHECK: "migraphx.dequantizelinear"(%[[Q]]
// CHECK: %[[W:.*]] = "migraphx.literal"() {value = dense<1.000000e+00> : tensor<3x2xf8E4M3FNUZ>}
// CHECK: "migraphx.dequantizelinear"(%[[W]]
// CHECK-NOT: migraphx.bit_cast
func.func @rounded(%x: tensor<2x3xf32>, %s: tensor<2x3xf32>, %t: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %q = "migraphx.quantizelinear"(%x, %s) {out_type = f8E4M3FN} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf8E4M3FN>
  %a = "migraphx.dequantizelinear"(%q, %s) : (tensor<2x3xf8E4M3FN>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<3x2xf8E4M3FN>} : () -> tensor<3x2xf8E4M3FN>
  %b = "migraphx.dequantizelinear"(%w, %t) : (tensor<3x2xf8E4M3FN>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
