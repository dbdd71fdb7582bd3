// Pointwise operators with types of their own: clip, where, convert, bit_cast, quantisation.
// RUN: mgx-opt %s | filecheck %s

// CHECK-LABEL: @clip
func.func @clip(%x: tensor<?x3xf32>, %low: tensor<2x3xf32>, %high: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: "migraphx.clip"(%arg0, %arg1, %arg2) : (tensor<?x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.clip"(%x, %low, %high) : (tensor<?x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: @where
func.func @where(%c: tensor<4xi1>, %n: tensor<4xui8>, %a: tensor<4xf16>, %b: tensor<?xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  // CHECK: "migraphx.where"(%arg0, %arg2, %arg3) : (tensor<4xi1>, tensor<4xf16>, tensor<?xf16>) -> tensor<4xf16>
  %0 = "migraphx.where"(%c, %a, %b) : (tensor<4xi1>, tensor<4xf16>, tensor<?xf16>) -> tensor<4xf16>
  // CHECK: "migraphx.where"(%arg1, %arg2, %arg3) : (tensor<4xui8>, tensor<4xf16>, tensor<?xf16>) -> tensor<4xf16>
  %1 = "migraphx.where"(%n, %a, %b) : (tensor<4xui8>, tensor<4xf16>, tensor<?xf16>) -> tensor<4xf16>
  return %0, %1 : tensor<4xf16>, tensor<4xf16>
}

// CHECK-LABEL: @convert
func.func @convert(%x: tensor<?x2xf32>, %i: tensor<ui8>) -> (tensor<?x2xf16>, tensor<?x2xf8E4M3FN>, tensor<i1>, tensor<f64>) {
  // CHECK: "migraphx.convert"(%arg0) : (tensor<?x2xf32>) -> tensor<?x2xf16>
  %0 = "migraphx.convert"(%x) : (tensor<?x2xf32>) -> tensor<?x2xf16>
  // CHECK: "migraphx.convert"(%arg0) {target_type = f8E4M3FN} : (tensor<?x2xf32>) -> tensor<?x2xf8E4M3FN>
  %1 = "migraphx.convert"(%x) {target_type = f8E4M3FN} : (tensor<?x2xf32>) -> tensor<?x2xf8E4M3FN>
  // CHECK: "migraphx.convert"(%arg0) {overflow = true} : (tensor<?x2xf32>) -> tensor<?x2xf16>
  %4 = "migraphx.convert"(%x) {overflow = true} : (tensor<?x2xf32>) -> tensor<?x2xf16>
  // CHECK: "migraphx.convert"(%arg1) {target_type = i1} : (tensor<ui8>) -> tensor<i1>
  %2 = "migraphx.convert"(%i) {target_type = i1} : (tensor<ui8>) -> tensor<i1>
  // CHECK: "migraphx.convert"(%arg1) {target_type = f64} : (tensor<ui8>) -> tensor<f64>
  %3 = "migraphx.convert"(%i) {target_type = f64} : (tensor<ui8>) -> tensor<f64>
  return %0, %1, %2, %3 : tensor<?x2xf16>, tensor<?x2xf8E4M3FN>, tensor<i1>, tensor<f64>
}

// CHECK-LABEL: @bit_cast
func.func @bit_cast(%x: tensor<?xf16>) -> tensor<?xui16> {
  // CHECK: "migraphx.bit_cast"(%arg0) {target_type = ui16} : (tensor<?xf16>) -> tensor<?xui16>
  %0 = "migraphx.bit_cast"(%x) {target_type = ui16} : (tensor<?xf16>) -> tensor<?xui16>
  return %0 : tensor<?xui16>
}

// CHECK-LABEL: @quantizelinear
func.func @quantizelinear(%x: tensor<4xf32>, %s: tensor<4xf32>, %z: tensor<4xi8>) -> (tensor<4xui8>, tensor<4xi8>, tensor<4xf8E5M2>) {
  // CHECK: "migraphx.quantizelinear"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xui8>
  %0 = "migraphx.quantizelinear"(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xui8>
  // CHECK: "migraphx.quantizelinear"(%arg0, %arg1, %arg2) {out_type = i8} : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xi8>
  %1 = "migraphx.quantizelinear"(%x, %s, %z) {out_type = i8} : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xi8>
  // CHECK: "migraphx.quantizelinear"(%arg0, %arg1) {out_type = f8E5M2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf8E5M2>
  %2 = "migraphx.quantizelinear"(%x, %s) {out_type = f8E5M2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf8E5M2>
  return %0, %1, %2 : tensor<4xui8>, tensor<4xi8>, tensor<4xf8E5M2>
}

// CHECK-LABEL: @dequantizelinear
func.func @dequantizelinear(%x: tensor<?xui8>, %s: tensor<?xf16>, %z: tensor<?xui8>) -> (tensor<?xf16>, tensor<?xf16>) {
  // CHECK: "migraphx.dequantizelinear"(%arg0, %arg1, %arg2) : (tensor<?xui8>, tensor<?xf16>, tensor<?xui8>) -> tensor<?xf16>
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<?xui8>, tensor<?xf16>, tensor<?xui8>) -> tensor<?xf16>
  // CHECK: "migraphx.dequantizelinear"(%arg0, %arg1) : (tensor<?xui8>, tensor<?xf16>) -> tensor<?xf16>
  %1 = "migraphx.dequantizelinear"(%x, %s) : (tensor<?xui8>, tensor<?xf16>) -> tensor<?xf16>
  return %0, %1 : tensor<?xf16>, tensor<?xf16>
}
