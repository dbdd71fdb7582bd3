// What ops of each kind print: attributes, absent and variadic operands, several results, dynamic dims.
// RUN: mgx-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: @abs
func.func @abs(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xf16>) -> (tensor<2x3xf32>, tensor<?x3xf16>) {
  // CHECK: "migraphx.abs"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.abs"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.abs"(%arg1) : (tensor<?x3xf16>) -> tensor<?x3xf16>
  %1 = "migraphx.abs"(%arg1) : (tensor<?x3xf16>) -> tensor<?x3xf16>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf16>
}

// CHECK-LABEL: @clip
func.func @clip(%x: tensor<?x3xf32>, %low: tensor<2x3xf32>, %high: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: "migraphx.clip"(%arg0, %arg1, %arg2) : (tensor<?x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.clip"(%x, %low, %high) : (tensor<?x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: @concat_0(
// CHECK: %0 = "migraphx.concat"(%arg0, %arg1, %arg2) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<?x?xf32>, tensor<2x1xf32>) -> tensor<2x?xf32>
func.func @concat_0(%arg0: tensor<2x3xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<2x1xf32>) -> (tensor<2x?xf32>) {
  %0 = "migraphx.concat"(%arg0, %arg1, %arg2) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<?x?xf32>, tensor<2x1xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// CHECK-LABEL: @slice_0(
// CHECK: %0 = "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: -1>, starts = array<i64: 1>} : (tensor<4x?xf32>) -> tensor<2x?xf32>
func.func @slice_0(%arg0: tensor<4x?xf32>) -> (tensor<2x?xf32>) {
  %0 = "migraphx.slice"(%arg0) {axes = array<i64: 0>, ends = array<i64: -1>, starts = array<i64: 1>} : (tensor<4x?xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// CHECK-LABEL: @convolution_0(
// CHECK: %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = false, dilation = array<i64: 1, 1>, group = 1 : i64, padding = array<i64: 1, 1>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<?x3x9x?xf32>, tensor<8x3x3x3xf32>) -> tensor<?x8x5x?xf32>
func.func @convolution_0(%arg0: tensor<?x3x9x?xf32>, %arg1: tensor<8x3x3x3xf32>) -> (tensor<?x8x5x?xf32>) {
  %0 = "migraphx.convolution"(%arg0, %arg1) {channels_last = false, dilation = array<i64: 1, 1>, group = 1 : i64, padding = array<i64: 1, 1>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<?x3x9x?xf32>, tensor<8x3x3x3xf32>) -> tensor<?x8x5x?xf32>
  return %0 : tensor<?x8x5x?xf32>
}

// CHECK-LABEL: @pooling_0(
// CHECK: %0 = "migraphx.pooling"(%arg0) {ceil_mode = false, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 3, 3>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x3x8x?xf32>) -> tensor<1x3x3x?xf32>
func.func @pooling_0(%arg0: tensor<1x3x8x?xf32>) -> (tensor<1x3x3x?xf32>) {
  %0 = "migraphx.pooling"(%arg0) {ceil_mode = false, channels_last = false, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 3, 3>, lp_order = 2 : i64, mode = "average", padding = array<i64: 0, 0>, padding_mode = "default_", stride = array<i64: 2, 2>} : (tensor<1x3x8x?xf32>) -> tensor<1x3x3x?xf32>
  return %0 : tensor<1x3x3x?xf32>
}

// CHECK-LABEL: @reduce_sum
func.func @reduce_sum(%arg0: tensor<2x3x4xf32>, %arg1: tensor<?x3x?xf16>, %arg2: tensor<?x3xi32>, %arg3: tensor<?x1x3xf64>, %arg4: tensor<2xi64>) -> (tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>) {
  // CHECK: "migraphx.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  %r0 = "migraphx.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: "migraphx.reduce_sum"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  %r1 = "migraphx.reduce_sum"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  // CHECK: "migraphx.reduce_sum"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  %r2 = "migraphx.reduce_sum"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  // CHECK: "migraphx.reduce_sum"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  %r3 = "migraphx.reduce_sum"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  return %r0, %r1, %r2, %r3 : tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>
}

// CHECK-LABEL: @gather_0(
// CHECK: %0 = "migraphx.gather"(%arg0, %arg1) {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3x?xi64>) -> tensor<2x3x?xf32>
func.func @gather_0(%arg0: tensor<2x5xf32>, %arg1: tensor<3x?xi64>) -> (tensor<2x3x?xf32>) {
  %0 = "migraphx.gather"(%arg0, %arg1) {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3x?xi64>) -> tensor<2x3x?xf32>
  return %0 : tensor<2x3x?xf32>
}

// CHECK-LABEL: @scatternd_none_0(
// CHECK: %0 = "migraphx.scatternd_none"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
func.func @scatternd_none_0(%arg0: tensor<4x?xi64>, %arg1: tensor<2x?x1xi64>, %arg2: tensor<2x?x?xi64>) -> (tensor<4x?xi64>) {
  %0 = "migraphx.scatternd_none"(%arg0, %arg1, %arg2) : (tensor<4x?xi64>, tensor<2x?x1xi64>, tensor<2x?x?xi64>) -> tensor<4x?xi64>
  return %0 : tensor<4x?xi64>
}

// CHECK-LABEL: @topk
func.func @topk(%arg0: tensor<2x3xf32>, %arg1: tensor<?x?xi32>, %arg2: tensor<?x3xf16>, %arg3: tensor<4x?xi64>) -> (tensor<2x2xf32>, tensor<2x2xi64>, tensor<?x5xi32>, tensor<?x5xi64>, tensor<1x3xf16>, tensor<1x3xi64>) {
  // CHECK: "migraphx.topk"(%arg0) {axis = 1 : i64, k = 2 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %r0:2 = "migraphx.topk"(%arg0) {axis = 1 : i64, k = 2 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  // CHECK: "migraphx.topk"(%arg1) {axis = -1 : i64, k = 5 : i64, largest = false} : (tensor<?x?xi32>) -> (tensor<?x5xi32>, tensor<?x5xi64>)
  %r1:2 = "migraphx.topk"(%arg1) {axis = -1 : i64, k = 5 : i64, largest = false} : (tensor<?x?xi32>) -> (tensor<?x5xi32>, tensor<?x5xi64>)
  // CHECK: "migraphx.topk"(%arg2, %arg3) {k = 1 : i64} : (tensor<?x3xf16>, tensor<4x?xi64>) -> (tensor<1x3xf16>, tensor<1x3xi64>)
  %r2:2 = "migraphx.topk"(%arg2, %arg3) {k = 1 : i64} : (tensor<?x3xf16>, tensor<4x?xi64>) -> (tensor<1x3xf16>, tensor<1x3xi64>)
  return %r0#0, %r0#1, %r1#0, %r1#1, %r2#0, %r2#1 : tensor<2x2xf32>, tensor<2x2xi64>, tensor<?x5xi32>, tensor<?x5xi64>, tensor<1x3xf16>, tensor<1x3xi64>
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

// CHECK-LABEL: @lstm
func.func @lstm(%arg0: tensor<5x2x3xf32>, %arg1: tensor<1x16x3xf32>, %arg2: tensor<1x16x4xf32>, %arg3: tensor<?x?x3xf16>, %arg4: tensor<2x16x3xf16>, %arg5: tensor<2x16x4xf16>, %arg6: tensor<2x32xf16>, %arg7: tensor<?xi32>, %arg8: tensor<2x?x4xf16>, %arg9: tensor<2x?x4xf16>, %arg10: tensor<2x12xf16>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>) {
  // CHECK: "migraphx.lstm"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  %r0:2 = "migraphx.lstm"(%arg0, %arg1, %arg2) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  // CHECK: "migraphx.lstm"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x16x3xf16>, tensor<2x16x4xf16>, tensor<2x32xf16>, tensor<?xi32>, tensor<2x?x4xf16>, tensor<2x?x4xf16>, tensor<2x12xf16>) -> (tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>)
  %r1:2 = "migraphx.lstm"(%arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10) {clip = 3.000000e+00 : f64, direction = "bidirectional", hidden_size = 4 : i64} : (tensor<?x?x3xf16>, tensor<2x16x3xf16>, tensor<2x16x4xf16>, tensor<2x32xf16>, tensor<?xi32>, tensor<2x?x4xf16>, tensor<2x?x4xf16>, tensor<2x12xf16>) -> (tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>)
  return %r0#0, %r0#1, %r1#0, %r1#1 : tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>, tensor<?x2x?x4xf16>, tensor<?x2x?x4xf16>
}

// CHECK-LABEL: @blocked_dot
func.func @blocked_dot(%arg0: tensor<?x64xf32>, %arg1: tensor<32x5xui8>, %arg2: tensor<2x5xf16>, %arg3: tensor<2x5xi8>, %arg4: tensor<2x3x24xf32>, %arg5: tensor<24x7xf8E4M3FN>, %arg6: tensor<1x7xf32>) -> (tensor<?x5xf32>, tensor<2x3x7xf32>) {
  // CHECK: "migraphx.blocked_dot"(%arg0, %arg1, %arg2, %arg3) {block_size = 32 : i64} : (tensor<?x64xf32>, tensor<32x5xui8>, tensor<2x5xf16>, tensor<2x5xi8>) -> tensor<?x5xf32>
  %0 = "migraphx.blocked_dot"(%arg0, %arg1, %arg2, %arg3) {block_size = 32 : i64} : (tensor<?x64xf32>, tensor<32x5xui8>, tensor<2x5xf16>, tensor<2x5xi8>) -> tensor<?x5xf32>
  // CHECK: "migraphx.blocked_dot"(%arg4, %arg5, %arg6) {bits = 8 : i64, block_size = 24 : i64} : (tensor<2x3x24xf32>, tensor<24x7xf8E4M3FN>, tensor<1x7xf32>) -> tensor<2x3x7xf32>
  %1 = "migraphx.blocked_dot"(%arg4, %arg5, %arg6) {bits = 8 : i64, block_size = 24 : i64} : (tensor<2x3x24xf32>, tensor<24x7xf8E4M3FN>, tensor<1x7xf32>) -> tensor<2x3x7xf32>
  return %0, %1 : tensor<?x5xf32>, tensor<2x3x7xf32>
}

// CHECK-LABEL: func.func @require
// CHECK: "migraphx.require"(%arg0, %arg1) {expected = "extents"} : (tensor<2xi64>, tensor<2xi1>) -> tensor<2xi64>
func.func @require(%a: tensor<2xi64>, %b: tensor<2xi1>) -> tensor<2xi64> {
  %0 = "migraphx.require"(%a, %b) {expected = "extents"} : (tensor<2xi64>, tensor<2xi1>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}
