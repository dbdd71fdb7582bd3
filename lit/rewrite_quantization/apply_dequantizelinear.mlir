// RUN: mgx-opt %s --mgx-rewrite-quantization --split-input-file | filecheck %s

// CHECK-LABEL: @zero_point
// CHECK-NEXT: %[[X:.*]] = "migraphx.convert"(%arg0) {target_type = f32}
// CHECK-NEXT: %[[Z:.*]] = "migraphx.convert"(%arg2) {target_type = f32}
// CHECK-NEXT: %[[D:.*]] = "migraphx.sub"(%[[X]], %[[Z]])
// CHECK-NEXT: "migraphx.mul"(%[[D]], %arg1)
func.func @zero_point(%x: tensor<4x8xi8>, %s: tensor<4x8xf32>, %z: tensor<4x8xi8>) -> tensor<4x8xf32> {
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<4x8xi8>, tensor<4x8xf32>, tensor<4x8xi8>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Differences of 8-bit integers are exact in 16 bits.
// CHECK-LABEL: @half
// CHECK-NEXT: "migraphx.convert"(%arg0) {target_type = f16}
// CHECK-NEXT: migraphx.mul
func.func @half(%x: tensor<8xui8>, %s: tensor<8xf16>) -> tensor<8xf16> {
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<8xui8>, tensor<8xf16>) -> tensor<8xf16>
  return %0 : tensor<8xf16>
}

// -----

// Those of 32-bit ones are not.
// CHECK-LABEL: @wide
// CHECK-NEXT: migraphx.dequantizelinear
func.func @wide(%x: tensor<8xi32>, %s: tensor<8xf16>) -> tensor<8xf16> {
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<8xi32>, tensor<8xf16>) -> tensor<8xf16>
  return %0 : tensor<8xf16>
}

// -----

// One number for all elements takes their extents from the zero points.
// CHECK-LABEL: @open_zero_point
// CHECK: %[[Z:.*]] = "migraphx.multibroadcast"(%{{.*}}, %arg0)
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: %[[N:.*]] = "migraphx.multibroadcast"(%{{.*}}, %[[Z]])
// CHECK: %[[D:.*]] = "migraphx.sub"(%[[X]], %[[N]])
// CHECK-NEXT: "migraphx.mul"(%[[D]], %arg1)
func.func @open_zero_point(%x: tensor<4x?xi8>, %s: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %five = "migraphx.literal"() {value = dense<5> : tensor<i8>} : () -> tensor<i8>
  %z = "migraphx.multibroadcast"(%five, %x) : (tensor<i8>, tensor<4x?xi8>) -> tensor<4x?xi8>
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<4x?xi8>, tensor<4x?xf32>, tensor<4x?xi8>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}
