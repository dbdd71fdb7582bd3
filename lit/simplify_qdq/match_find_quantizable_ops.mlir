// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// One scale for rows, one for each column: the i8 values are multiplied, the scales once.
// CHECK-LABEL: @dot
// CHECK: %[[Q:.*]] = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xi8>, tensor<3x2xi8>) -> tensor<2x2xi32>
// CHECK: "migraphx.literal"() {value = dense<[1.250000e-01, 2.500000e-01]>
// CHECK-NEXT: %[[S:.*]] = "migraphx.multibroadcast"
// CHECK-NEXT: %[[D:.*]] = "migraphx.dequantizelinear"(%[[Q]], %[[S]])
// CHECK-NEXT: return %[[D]]
func.func @dot(%x: tensor<2x3xi8>, %w: tensor<3x2xi8>) -> tensor<2x2xf32> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %t = "migraphx.literal"() {value = dense<[0.25, 0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
  %tb = "migraphx.broadcast"(%t) {axis = 1 : i64, out_lens = array<i64: 3, 2>} : (tensor<2xf32>) -> tensor<3x2xf32>
  %a = "migraphx.dequantizelinear"(%x, %sb) : (tensor<2x3xi8>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "migraphx.dequantizelinear"(%w, %tb) : (tensor<3x2xi8>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// A zero point of the first operand: less its product with the sums of columns, one row for all.
// Two constant scales are one. Views stay between.
// CHECK-LABEL: @affine
// CHECK: %[[W:.*]] = "migraphx.transpose"(%arg1) {{.*}} : (tensor<2x3xi8>) -> tensor<3x2xi8>
// CHECK: %[[Q:.*]] = "migraphx.quant_dot"(%arg0, %[[W]])
// CHECK: %[[N:.*]] = "migraphx.reduce_sum"{{.*}} -> tensor<1x2xi32>
// CHECK: %[[P:.*]] = "migraphx.mul"({{.*}}, %[[N]])
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%[[P]])
// CHECK: %[[C:.*]] = "migraphx.sub"(%[[Q]], %[[B]])
// CHECK: value = dense<1.250000e-01> : tensor<f32>
// CHECK: "migraphx.dequantizelinear"(%[[C]]
// CHECK-NOT: migraphx.dot
func.func @affine(%x: tensor<2x3xi8>, %w: tensor<2x3xi8>) -> tensor<2x2xf32> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %t = "migraphx.literal"() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %z = "migraphx.literal"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
  %tb = "migraphx.multibroadcast"(%t) {out_lens = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 3>} : (tensor<i8>) -> tensor<2x3xi8>
  %a = "migraphx.dequantizelinear"(%x, %sb, %zb) : (tensor<2x3xi8>, tensor<2x3xf32>, tensor<2x3xi8>) -> tensor<2x3xf32>
  %b = "migraphx.dequantizelinear"(%w, %tb) : (tensor<2x3xi8>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.transpose"(%b) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %0 = "migraphx.dot"(%a, %c) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// The image is padded with its zero point, so that each channel is off by one number.
// CHECK-LABEL: @convolution
// CHECK: %[[Q:.*]] = "migraphx.quant_convolution"(%arg0, %arg1) {{.*}}pad_value = 3
// CHECK: "migraphx.reduce_sum"{{.*}}axes = array<i64: 1, 2, 3>
// CHECK: %[[Z:.*]] = "migraphx.broadcast"{{.*}} -> tensor<2x3x4x4xi32>
// CHECK: "migraphx.sub"(%[[Q]], %[[Z]])
// CHECK: migraphx.dequantizelinear
// CHECK-NOT: "migraphx.convolution"
func.func @convolution(%x: tensor<2x1x4x4xi8>, %w: tensor<3x1x3x3xi8>) -> tensor<2x3x4x4xf32> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %t = "migraphx.literal"() {value = dense<[0.25, 0.5, 1.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %z = "migraphx.literal"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 1, 4, 4>} : (tensor<f32>) -> tensor<2x1x4x4xf32>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 1, 4, 4>} : (tensor<i8>) -> tensor<2x1x4x4xi8>
  %tb = "migraphx.broadcast"(%t) {axis = 0 : i64, out_lens = array<i64: 3, 1, 3, 3>} : (tensor<3xf32>) -> tensor<3x1x3x3xf32>
  %a = "migraphx.dequantizelinear"(%x, %sb, %zb) : (tensor<2x1x4x4xi8>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xi8>) -> tensor<2x1x4x4xf32>
  %b = "migraphx.dequantizelinear"(%w, %tb) : (tensor<3x1x3x3xi8>, tensor<3x1x3x3xf32>) -> tensor<3x1x3x3xf32>
  %0 = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>} : (tensor<2x1x4x4xf32>, tensor<3x1x3x3xf32>) -> tensor<2x3x4x4xf32>
  return %0 : tensor<2x3x4x4xf32>
}

// -----

// A zero point that the run gives is convolved at the image's size: what pads it is 0.
// CHECK-LABEL: @zero_point_of_the_run
// CHECK: %[[Q:.*]] = "migraphx.quant_convolution"(%arg0, %arg1) {{.*}}pad_value = 0
// CHECK: %[[Z:.*]] = "migraphx.multibroadcast"{{.*}} -> tensor<1x1x4x4xi8>
// CHECK: %[[P:.*]] = "migraphx.quant_convolution"(%[[Z]], %arg1)
// CHECK: "migraphx.sub"(%[[Q]]
func.func @zero_point_of_the_run(%x: tensor<2x1x4x4xi8>, %w: tensor<3x1x3x3xi8>, %z: tensor<1xi8>) -> tensor<2x3x4x4xf32> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 1, 4, 4>} : (tensor<f32>) -> tensor<2x1x4x4xf32>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 1, 4, 4>} : (tensor<1xi8>) -> tensor<2x1x4x4xi8>
  %tb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 3, 1, 3, 3>} : (tensor<f32>) -> tensor<3x1x3x3xf32>
  %a = "migraphx.dequantizelinear"(%x, %sb, %zb) : (tensor<2x1x4x4xi8>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xi8>) -> tensor<2x1x4x4xf32>
  %b = "migraphx.dequantizelinear"(%w, %tb) : (tensor<3x1x3x3xi8>, tensor<3x1x3x3xf32>) -> tensor<3x1x3x3xf32>
  %0 = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>} : (tensor<2x1x4x4xf32>, tensor<3x1x3x3xf32>) -> tensor<2x3x4x4xf32>
  return %0 : tensor<2x3x4x4xf32>
}

// -----

// f8 values sum in f32, and 16-bit results are scaled in f32.
// CHECK-LABEL: @f8
// CHECK: %[[Q:.*]] = "migraphx.quant_dot"{{.*}} -> tensor<2x2xf32>
// CHECK: %[[D:.*]] = "migraphx.dequantizelinear"(%[[Q]], {{.*}} -> tensor<2x2xf32>
// CHECK: "migraphx.convert"(%[[D]]) {target_type = f16}
func.func @f8(%x: tensor<2x2xf8E4M3FN>, %w: tensor<2x2xf8E4M3FN>) -> tensor<2x2xf16> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<f16>} : () -> tensor<f16>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 2>} : (tensor<f16>) -> tensor<2x2xf16>
  %a = "migraphx.dequantizelinear"(%x, %sb) : (tensor<2x2xf8E4M3FN>, tensor<2x2xf16>) -> tensor<2x2xf16>
  %b = "migraphx.dequantizelinear"(%w, %sb) : (tensor<2x2xf8E4M3FN>, tensor<2x2xf16>) -> tensor<2x2xf16>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  return %0 : tensor<2x2xf16>
}

// -----

// Near misses: the first scale varies along what is summed.
// CHECK-LABEL: @summed
// CHECK-NOT: migraphx.quant_dot
func.func @summed(%x: tensor<2x3xi8>, %w: tensor<3x2xi8>, %s: tensor<3xf32>, %t: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %a = "migraphx.dequantizelinear"(%x, %sb) : (tensor<2x3xi8>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "migraphx.dequantizelinear"(%w, %t) : (tensor<3x2xi8>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Weights alone are quantised; 32-bit integers.
// CHECK-LABEL: @one_side
// CHECK-NOT: migraphx.quant_dot
func.func @one_side(%x: tensor<2x2xf32>, %y: tensor<2x2xi32>, %w: tensor<2x2xi8>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 2>} : (tensor<f32>) -> tensor<2x2xf32>
  %a = "migraphx.dequantizelinear"(%y, %sb) : (tensor<2x2xi32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = "migraphx.dequantizelinear"(%w, %sb) : (tensor<2x2xi8>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %b) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%a, %b) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// Unsigned values become signed ones with 128 less, and so does their zero point; one of 128
// is none.
// CHECK-LABEL: @unsigned
// CHECK: %[[W:.*]] = "migraphx.convert"(%arg0) {target_type = i16}
// CHECK: %[[S:.*]] = "migraphx.sub"(%[[W]]
// CHECK: %[[X:.*]] = "migraphx.convert"(%[[S]]) {target_type = i8}
// CHECK: "migraphx.quant_dot"(%[[X]], %arg1)
// CHECK-NOT: migraphx.reduce_sum
func.func @unsigned(%x: tensor<2x2xui8>, %w: tensor<2x2xi8>) -> tensor<2x2xf32> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %z = "migraphx.literal"() {value = dense<128> : tensor<2x2xui8>} : () -> tensor<2x2xui8>
  %a = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<2x2xui8>, tensor<2x2xf32>, tensor<2x2xui8>) -> tensor<2x2xf32>
  %b = "migraphx.dequantizelinear"(%w, %s) : (tensor<2x2xi8>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
