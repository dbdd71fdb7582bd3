// RUN: mgx-opt %s --mgx-pack-weights --split-input-file | filecheck %s
// Weights of f16 and bf16 that are converted to f32 stay in 16 bits, for few and for dynamic rows.

// CHECK-LABEL: @one_row(
// CHECK: "migraphx.literal"() {{.*}} -> tensor<64x96xbf16>
// CHECK: "migraphx.blocked_dot"({{.*}}) {bits = 16 : i64, block_size = 64 : i64, minima = false}
func.func @one_row(%x: tensor<1x64xf32>) -> tensor<1x96xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<96x64xbf16>} : () -> tensor<96x64xbf16>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<96x64xbf16>) -> tensor<96x64xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<96x64xf32>) -> tensor<64x96xf32>
  %2 = "migraphx.dot"(%x, %1) : (tensor<1x64xf32>, tensor<64x96xf32>) -> tensor<1x96xf32>
  return %2 : tensor<1x96xf32>
}

// -----

// CHECK-LABEL: @dynamic_rows(
// CHECK: "migraphx.blocked_dot"
func.func @dynamic_rows(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<64x96xf16>} : () -> tensor<64x96xf16>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x96xf16>) -> tensor<64x96xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<?x64xf32>, tensor<64x96xf32>) -> tensor<?x96xf32>
  return %1 : tensor<?x96xf32>
}

// -----

// CHECK-LABEL: @many_rows(
// CHECK: "migraphx.dot"
func.func @many_rows(%x: tensor<4x64xf32>) -> tensor<4x96xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<64x96xf16>} : () -> tensor<64x96xf16>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x96xf16>) -> tensor<64x96xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<4x64xf32>, tensor<64x96xf32>) -> tensor<4x96xf32>
  return %1 : tensor<4x96xf32>
}

// -----

// CHECK-LABEL: @rounded_between(
// CHECK: "migraphx.dot"
func.func @rounded_between(%x: tensor<1x64xf32>) -> tensor<1x96xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<64x96xf16>} : () -> tensor<64x96xf16>
  %0 = "migraphx.convert"(%w) {target_type = bf16} : (tensor<64x96xf16>) -> tensor<64x96xbf16>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<64x96xbf16>) -> tensor<64x96xf32>
  %2 = "migraphx.dot"(%x, %1) : (tensor<1x64xf32>, tensor<64x96xf32>) -> tensor<1x96xf32>
  return %2 : tensor<1x96xf32>
}

// -----

// CHECK-LABEL: @scale_in_16_bits(
// CHECK: "migraphx.literal"() {{.*}} -> tensor<64x96xi8>
// CHECK: "migraphx.blocked_dot"({{.*}}) {bits = 8 : i64
func.func @scale_in_16_bits(%x: tensor<1x64xf32>) -> tensor<1x96xf32> {
  %w = "migraphx.literal"() {value = dense<3> : tensor<64x96xi8>} : () -> tensor<64x96xi8>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x96xi8>) -> tensor<64x96xf32>
  %h = "migraphx.literal"() {value = dense<0.5> : tensor<64x96xf16>} : () -> tensor<64x96xf16>
  %s = "migraphx.convert"(%h) {target_type = f32} : (tensor<64x96xf16>) -> tensor<64x96xf32>
  %1 = "migraphx.mul"(%s, %0) : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = "migraphx.dot"(%x, %1) : (tensor<1x64xf32>, tensor<64x96xf32>) -> tensor<1x96xf32>
  return %2 : tensor<1x96xf32>
}
