// Cache and rotary ops: round trip.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @concat_past_present_0(
// CHECK: %0 = "migraphx.concat_past_present"(%arg0, %arg1, %arg2) {kv_num_heads = 0 : i64} : (tensor<1x2x1x8xf16>, tensor<1xi32>, tensor<1x2x64x8xf16>) -> tensor<1x2x64x8xf16>
func.func @concat_past_present_0(%arg0: tensor<1x2x1x8xf16>, %arg1: tensor<1xi32>, %arg2: tensor<1x2x64x8xf16>) -> (tensor<1x2x64x8xf16>) {
  %0 = "migraphx.concat_past_present"(%arg0, %arg1, %arg2) {kv_num_heads = 0 : i64} : (tensor<1x2x1x8xf16>, tensor<1xi32>, tensor<1x2x64x8xf16>) -> tensor<1x2x64x8xf16>
  return %0 : tensor<1x2x64x8xf16>
}

// -----

// CHECK-LABEL: @gqa_rotary_embedding_0(
// CHECK: %0 = "migraphx.gqa_rotary_embedding"(%arg0, %arg1, %arg2, %arg3) {interleaved = false, kv_num_heads = 1 : i64, num_heads = 2 : i64} : (tensor<1x4x?x8xf16>, tensor<1x1xi32>, tensor<64x4xf16>, tensor<64x4xf16>) -> tensor<1x4x?x8xf16>
func.func @gqa_rotary_embedding_0(%arg0: tensor<1x4x?x8xf16>, %arg1: tensor<1x1xi32>, %arg2: tensor<64x4xf16>, %arg3: tensor<64x4xf16>) -> (tensor<1x4x?x8xf16>) {
  %0 = "migraphx.gqa_rotary_embedding"(%arg0, %arg1, %arg2, %arg3) {interleaved = false, kv_num_heads = 1 : i64, num_heads = 2 : i64} : (tensor<1x4x?x8xf16>, tensor<1x1xi32>, tensor<64x4xf16>, tensor<64x4xf16>) -> tensor<1x4x?x8xf16>
  return %0 : tensor<1x4x?x8xf16>
}
