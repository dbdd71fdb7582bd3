// RUN: mgx-opt %s --mgx-simplify-qdq=mixed=true --split-input-file | filecheck %s

// As ConvInteger has them: the image is padded with its zero point.
// CHECK-LABEL: @widened
// CHECK: %[[Q:.*]] = "migraphx.quant_convolution"(%arg0, %arg1) {{.*}}pad_value = 3 : i64{{.*}} : (tensor<1x2x4x4xui8>, tensor<3x2x3x3xi8>) -> tensor<1x3x4x4xi32>
// CHECK: "migraphx.sub"(%[[Q]],
// CHECK-NOT: "migraphx.convolution"
func.func @widened(%x: tensor<1x2x4x4xui8>, %w: tensor<3x2x3x3xi8>) -> tensor<1x3x4x4xi32> {
  %z = "migraphx.literal"() {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  %i = "migraphx.convert"(%z) {target_type = i32} : (tensor<ui8>) -> tensor<i32>
  %b = "migraphx.multibroadcast"(%i) {out_lens = array<i64: 1, 2, 4, 4>} : (tensor<i32>) -> tensor<1x2x4x4xi32>
  %0 = "migraphx.convert"(%x) {target_type = i32} : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xi32>
  %1 = "migraphx.sub"(%0, %b) : (tensor<1x2x4x4xi32>, tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xi32>
  %2 = "migraphx.convert"(%w) {target_type = i32} : (tensor<3x2x3x3xi8>) -> tensor<3x2x3x3xi32>
  %3 = "migraphx.convolution"(%1, %2) {padding = array<i64: 1, 1>} : (tensor<1x2x4x4xi32>, tensor<3x2x3x3xi32>) -> tensor<1x3x4x4xi32>
  return %3 : tensor<1x3x4x4xi32>
}

// -----

// A zero point for each input channel varies along what is summed.
// CHECK-LABEL: @by_channel
// CHECK: "migraphx.convolution"
func.func @by_channel(%x: tensor<1x2x4x4xui8>, %w: tensor<3x2x3x3xi8>, %z: tensor<2x1x1xi32>) -> tensor<1x3x2x2xi32> {
  %b = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 1, 2, 4, 4>} : (tensor<2x1x1xi32>) -> tensor<1x2x4x4xi32>
  %0 = "migraphx.convert"(%x) {target_type = i32} : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xi32>
  %1 = "migraphx.sub"(%0, %b) : (tensor<1x2x4x4xi32>, tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xi32>
  %2 = "migraphx.convert"(%w) {target_type = i32} : (tensor<3x2x3x3xi8>) -> tensor<3x2x3x3xi32>
  %3 = "migraphx.convolution"(%1, %2) : (tensor<1x2x4x4xi32>, tensor<3x2x3x3xi32>) -> tensor<1x3x2x2xi32>
  return %3 : tensor<1x3x2x2xi32>
}
