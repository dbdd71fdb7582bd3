// Products with weights of few bits: round trip.
// RUN: mgx-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: @blocked_dot
func.func @blocked_dot(%arg0: tensor<?x64xf32>, %arg1: tensor<32x5xui8>, %arg2: tensor<2x5xf16>, %arg3: tensor<2x5xi8>, %arg4: tensor<2x3x24xf32>, %arg5: tensor<24x7xf8E4M3FN>, %arg6: tensor<1x7xf32>) -> (tensor<?x5xf32>, tensor<2x3x7xf32>) {
  // CHECK: "migraphx.blocked_dot"(%arg0, %arg1, %arg2, %arg3) {block_size = 32 : i64} : (tensor<?x64xf32>, tensor<32x5xui8>, tensor<2x5xf16>, tensor<2x5xi8>) -> tensor<?x5xf32>
  %0 = "migraphx.blocked_dot"(%arg0, %arg1, %arg2, %arg3) {block_size = 32 : i64} : (tensor<?x64xf32>, tensor<32x5xui8>, tensor<2x5xf16>, tensor<2x5xi8>) -> tensor<?x5xf32>
  // CHECK: "migraphx.blocked_dot"(%arg4, %arg5, %arg6) {bits = 8 : i64, block_size = 24 : i64} : (tensor<2x3x24xf32>, tensor<24x7xf8E4M3FN>, tensor<1x7xf32>) -> tensor<2x3x7xf32>
  %1 = "migraphx.blocked_dot"(%arg4, %arg5, %arg6) {bits = 8 : i64, block_size = 24 : i64} : (tensor<2x3x24xf32>, tensor<24x7xf8E4M3FN>, tensor<1x7xf32>) -> tensor<2x3x7xf32>
  return %0, %1 : tensor<?x5xf32>, tensor<2x3x7xf32>
}
