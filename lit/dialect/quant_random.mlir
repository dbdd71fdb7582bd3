// Quantised products, packed values, random numbers, buffers.
// RUN: mgx-opt %s | filecheck %s

// CHECK-LABEL: @pack_int4
func.func @pack_int4(%arg0: tensor<2x4xi8>, %arg1: tensor<?x3xui8>) -> (tensor<2x2xi8>, tensor<?x3xui8>) {
  // CHECK: "migraphx.pack_int4"(%arg0) : (tensor<2x4xi8>) -> tensor<2x2xi8>
  %r0 = "migraphx.pack_int4"(%arg0) : (tensor<2x4xi8>) -> tensor<2x2xi8>
  // CHECK: "migraphx.pack_int4"(%arg1) {axis = 0 : i64} : (tensor<?x3xui8>) -> tensor<?x3xui8>
  %r1 = "migraphx.pack_int4"(%arg1) {axis = 0 : i64} : (tensor<?x3xui8>) -> tensor<?x3xui8>
  return %r0, %r1 : tensor<2x2xi8>, tensor<?x3xui8>
}

// CHECK-LABEL: @unpack_int4
func.func @unpack_int4(%arg0: tensor<2x4xi8>, %arg1: tensor<?x3xui8>) -> (tensor<2x8xi8>, tensor<?x3xui8>) {
  // CHECK: "migraphx.unpack_int4"(%arg0) : (tensor<2x4xi8>) -> tensor<2x8xi8>
  %r0 = "migraphx.unpack_int4"(%arg0) : (tensor<2x4xi8>) -> tensor<2x8xi8>
  // CHECK: "migraphx.unpack_int4"(%arg1) {axis = 0 : i64} : (tensor<?x3xui8>) -> tensor<?x3xui8>
  %r1 = "migraphx.unpack_int4"(%arg1) {axis = 0 : i64} : (tensor<?x3xui8>) -> tensor<?x3xui8>
  return %r0, %r1 : tensor<2x8xi8>, tensor<?x3xui8>
}

// CHECK-LABEL: @pack_fp4
func.func @pack_fp4(%arg0: tensor<2x4xf32>, %arg1: tensor<4x3xf8E4M3FN>) -> (tensor<2x2xui8>, tensor<2x3xui8>) {
  // CHECK: "migraphx.pack_fp4"(%arg0) : (tensor<2x4xf32>) -> tensor<2x2xui8>
  %r0 = "migraphx.pack_fp4"(%arg0) : (tensor<2x4xf32>) -> tensor<2x2xui8>
  // CHECK: "migraphx.pack_fp4"(%arg1) {axis = 0 : i64} : (tensor<4x3xf8E4M3FN>) -> tensor<2x3xui8>
  %r1 = "migraphx.pack_fp4"(%arg1) {axis = 0 : i64} : (tensor<4x3xf8E4M3FN>) -> tensor<2x3xui8>
  return %r0, %r1 : tensor<2x2xui8>, tensor<2x3xui8>
}

// CHECK-LABEL: @unpack_fp4
func.func @unpack_fp4(%arg0: tensor<2x4xui8>) -> (tensor<2x8xf8E4M3FN>) {
  // CHECK: "migraphx.unpack_fp4"(%arg0) : (tensor<2x4xui8>) -> tensor<2x8xf8E4M3FN>
  %r0 = "migraphx.unpack_fp4"(%arg0) : (tensor<2x4xui8>) -> tensor<2x8xf8E4M3FN>
  return %r0 : tensor<2x8xf8E4M3FN>
}

// CHECK-LABEL: @quant_dot
func.func @quant_dot(%arg0: tensor<?x3x4xi8>, %arg1: tensor<?x4x5xi8>, %arg2: tensor<3x4xui8>, %arg3: tensor<4x5xi8>, %arg4: tensor<3x4xf8E4M3FN>, %arg5: tensor<4x5xf8E4M3FN>, %arg6: tensor<3x4xf8E4M3FN>, %arg7: tensor<4x5xf8E4M3FN>, %arg8: tensor<3x4xf32>, %arg9: tensor<4x5xf32>) -> (tensor<?x3x5xi32>, tensor<3x5xi32>, tensor<3x5xf32>, tensor<3x5xf32>) {
  // CHECK: "migraphx.quant_dot"(%arg0, %arg1) : (tensor<?x3x4xi8>, tensor<?x4x5xi8>) -> tensor<?x3x5xi32>
  %r0 = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<?x3x4xi8>, tensor<?x4x5xi8>) -> tensor<?x3x5xi32>
  // CHECK: "migraphx.quant_dot"(%arg2, %arg3) : (tensor<3x4xui8>, tensor<4x5xi8>) -> tensor<3x5xi32>
  %r1 = "migraphx.quant_dot"(%arg2, %arg3) : (tensor<3x4xui8>, tensor<4x5xi8>) -> tensor<3x5xi32>
  // CHECK: "migraphx.quant_dot"(%arg4, %arg5) : (tensor<3x4xf8E4M3FN>, tensor<4x5xf8E4M3FN>) -> tensor<3x5xf32>
  %r2 = "migraphx.quant_dot"(%arg4, %arg5) : (tensor<3x4xf8E4M3FN>, tensor<4x5xf8E4M3FN>) -> tensor<3x5xf32>
  // CHECK: "migraphx.quant_dot"(%arg6, %arg7, %arg8, %arg9) : (tensor<3x4xf8E4M3FN>, tensor<4x5xf8E4M3FN>, tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %r3 = "migraphx.quant_dot"(%arg6, %arg7, %arg8, %arg9) : (tensor<3x4xf8E4M3FN>, tensor<4x5xf8E4M3FN>, tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %r0, %r1, %r2, %r3 : tensor<?x3x5xi32>, tensor<3x5xi32>, tensor<3x5xf32>, tensor<3x5xf32>
}

// CHECK-LABEL: @quant_convolution
func.func @quant_convolution(%arg0: tensor<?x3x8x8xi8>, %arg1: tensor<4x3x3x3xi8>, %arg2: tensor<1x4x9xui8>, %arg3: tensor<6x2x2xui8>) -> (tensor<?x4x6x6xi32>, tensor<1x6x5xi32>) {
  // CHECK: "migraphx.quant_convolution"(%arg0, %arg1) : (tensor<?x3x8x8xi8>, tensor<4x3x3x3xi8>) -> tensor<?x4x6x6xi32>
  %r0 = "migraphx.quant_convolution"(%arg0, %arg1) : (tensor<?x3x8x8xi8>, tensor<4x3x3x3xi8>) -> tensor<?x4x6x6xi32>
  // CHECK: "migraphx.quant_convolution"(%arg2, %arg3) {dilation = array<i64: 1>, group = 2 : i64, padding = array<i64: 1, 0>, stride = array<i64: 2>} : (tensor<1x4x9xui8>, tensor<6x2x2xui8>) -> tensor<1x6x5xi32>
  %r1 = "migraphx.quant_convolution"(%arg2, %arg3) {dilation = array<i64: 1>, group = 2 : i64, padding = array<i64: 1, 0>, stride = array<i64: 2>} : (tensor<1x4x9xui8>, tensor<6x2x2xui8>) -> tensor<1x6x5xi32>
  return %r0, %r1 : tensor<?x4x6x6xi32>, tensor<1x6x5xi32>
}

// CHECK-LABEL: @random_seed
func.func @random_seed() -> (tensor<ui64>, tensor<i32>) {
  // CHECK: "migraphx.random_seed"() : () -> tensor<ui64>
  %r0 = "migraphx.random_seed"() : () -> tensor<ui64>
  // CHECK: "migraphx.random_seed"() {dtype = i32} : () -> tensor<i32>
  %r1 = "migraphx.random_seed"() {dtype = i32} : () -> tensor<i32>
  return %r0, %r1 : tensor<ui64>, tensor<i32>
}

// CHECK-LABEL: @random_uniform
func.func @random_uniform(%arg0: tensor<ui64>, %arg1: tensor<2x?xf16>) -> (tensor<2x?xf16>) {
  // CHECK: "migraphx.random_uniform"(%arg0, %arg1) : (tensor<ui64>, tensor<2x?xf16>) -> tensor<2x?xf16>
  %r0 = "migraphx.random_uniform"(%arg0, %arg1) : (tensor<ui64>, tensor<2x?xf16>) -> tensor<2x?xf16>
  return %r0 : tensor<2x?xf16>
}

// CHECK-LABEL: @multinomial
func.func @multinomial(%arg0: tensor<2x5xf32>, %arg1: tensor<2x?xf32>, %arg2: tensor<?x5xf32>, %arg3: tensor<3x7xf32>) -> (tensor<2x?xi32>, tensor<3x7xi64>) {
  // CHECK: "migraphx.multinomial"(%arg0, %arg1) : (tensor<2x5xf32>, tensor<2x?xf32>) -> tensor<2x?xi32>
  %r0 = "migraphx.multinomial"(%arg0, %arg1) : (tensor<2x5xf32>, tensor<2x?xf32>) -> tensor<2x?xi32>
  // CHECK: "migraphx.multinomial"(%arg2, %arg3) {dtype = i64} : (tensor<?x5xf32>, tensor<3x7xf32>) -> tensor<3x7xi64>
  %r1 = "migraphx.multinomial"(%arg2, %arg3) {dtype = i64} : (tensor<?x5xf32>, tensor<3x7xf32>) -> tensor<3x7xi64>
  return %r0, %r1 : tensor<2x?xi32>, tensor<3x7xi64>
}

// CHECK-LABEL: @dynamic_range
func.func @dynamic_range(%arg0: tensor<i64>, %arg1: tensor<1xi64>, %arg2: tensor<i64>, %arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>) -> (tensor<?xi64>, tensor<?xf32>) {
  // CHECK: "migraphx.dynamic_range"(%arg0, %arg1, %arg2) : (tensor<i64>, tensor<1xi64>, tensor<i64>) -> tensor<?xi64>
  %r0 = "migraphx.dynamic_range"(%arg0, %arg1, %arg2) : (tensor<i64>, tensor<1xi64>, tensor<i64>) -> tensor<?xi64>
  // CHECK: "migraphx.dynamic_range"(%arg3, %arg4, %arg5) {max_output = 100 : i64} : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<?xf32>
  %r1 = "migraphx.dynamic_range"(%arg3, %arg4, %arg5) {max_output = 100 : i64} : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<?xf32>
  return %r0, %r1 : tensor<?xi64>, tensor<?xf32>
}

// CHECK-LABEL: @allocate
func.func @allocate(%arg0: tensor<3xi64>, %arg1: tensor<1xi64>) -> (tensor<2x3xf16>, tensor<?x?x?xi8>, tensor<?xf32>) {
  // CHECK: "migraphx.allocate"() {shape = tensor<2x3xf16>} : () -> tensor<2x3xf16>
  %r0 = "migraphx.allocate"() {shape = tensor<2x3xf16>} : () -> tensor<2x3xf16>
  // CHECK: "migraphx.allocate"(%arg0) {buf_type = i8} : (tensor<3xi64>) -> tensor<?x?x?xi8>
  %r1 = "migraphx.allocate"(%arg0) {buf_type = i8} : (tensor<3xi64>) -> tensor<?x?x?xi8>
  // CHECK: "migraphx.allocate"(%arg1) : (tensor<1xi64>) -> tensor<?xf32>
  %r2 = "migraphx.allocate"(%arg1) : (tensor<1xi64>) -> tensor<?xf32>
  return %r0, %r1, %r2 : tensor<2x3xf16>, tensor<?x?x?xi8>, tensor<?xf32>
}

// CHECK-LABEL: @fill
func.func @fill(%arg0: tensor<1xf32>, %arg1: tensor<?x3xf32>) -> (tensor<?x3xf32>) {
  // CHECK: "migraphx.fill"(%arg0, %arg1) : (tensor<1xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %r0 = "migraphx.fill"(%arg0, %arg1) : (tensor<1xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %r0 : tensor<?x3xf32>
}
