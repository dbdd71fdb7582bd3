// RUN: mgx-opt %s --mgx-simplify-qdq=mx=true --split-input-file | filecheck %s

// CHECK-LABEL: @blocks
// CHECK: "migraphx.quant_dot"(%arg0, %arg1, {{.*}}, {{.*}}) : (tensor<2x4xf8E4M3FN>, tensor<4x2xf8E4M3FN>, tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
// CHECK-NOT: migraphx.dequantizelinear
func.func @blocks(%x: tensor<2x4xf8E4M3FN>, %w: tensor<4x2xf8E4M3FN>, %s: tensor<2x2x1xf32>, %t: tensor<4x2xf32>) -> tensor<2x2xf32> {
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 2, 2>} : (tensor<2x2x1xf32>) -> tensor<2x2x2xf32>
  %sr = "migraphx.reshape"(%sb) {dims = array<i64: 2, 4>} : (tensor<2x2x2xf32>) -> tensor<2x4xf32>
  %a = "migraphx.dequantizelinear"(%x, %sr) : (tensor<2x4xf8E4M3FN>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = "migraphx.dequantizelinear"(%w, %t) : (tensor<4x2xf8E4M3FN>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Near miss: integers, whose products take no scales.
// CHECK-LABEL: @integers
// CHECK: migraphx.dot
// CHECK-NOT: migraphx.quant_dot
func.func @integers(%x: tensor<2x2xi8>, %w: tensor<2x2xi8>, %s: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %a = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x2xi8>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = "migraphx.dequantizelinear"(%w, %s) : (tensor<2x2xi8>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
