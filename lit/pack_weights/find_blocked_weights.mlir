// RUN: mgx-opt %s --mgx-pack-weights --split-input-file | filecheck %s

// Two blocks of 32 rows, whose scales are along the columns of the transposed codes. Signed codes
// get 8 added, which stands for 0 then.
// CHECK-LABEL: @signed_codes
// CHECK: dense<153> : tensor<32x64xui8>
func.func @signed_codes(%x: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x32xi8>} : () -> tensor<64x32xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x2xf32>} : () -> tensor<64x2xf32>
  %0 = "migraphx.unpack_int4"(%w) : (tensor<64x32xi8>) -> tensor<64x64xi8>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %2 = "migraphx.unsqueeze"(%s) {axes = array<i64: 2>} : (tensor<64x2xf32>) -> tensor<64x2x1xf32>
  %3 = "migraphx.multibroadcast"(%2) {out_lens = array<i64: 64, 2, 32>} : (tensor<64x2x1xf32>) -> tensor<64x2x32xf32>
  %4 = "migraphx.reshape"(%3) {dims = array<i64: 64, 64>} : (tensor<64x2x32xf32>) -> tensor<64x64xf32>
  %5 = "migraphx.mul"(%1, %4) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %6 = "migraphx.transpose"(%5) {permutation = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %7 = "migraphx.dot"(%x, %6) : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
  return %7 : tensor<3x64xf32>
}

// -----

// A scale that varies along the rows within eight of them stays in front of the product.
// CHECK-LABEL: @by_row
// CHECK-NOT: migraphx.blocked_dot
// CHECK: "migraphx.dot"
func.func @by_row(%x: tensor<3x64xf32>, %t: tensor<64x1xf32>) -> tensor<3x64xf32> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %1 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %2 = "migraphx.multibroadcast"(%t) {out_lens = array<i64: 64, 64>} : (tensor<64x1xf32>) -> tensor<64x64xf32>
  %5 = "migraphx.mul"(%1, %2) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %7 = "migraphx.dot"(%x, %5) : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
  return %7 : tensor<3x64xf32>
}

// -----

// Zero points in f32 that are -m / s of numbers m in f16 become these: -1.0 / 3.0 is rounded.
// CHECK-LABEL: @minima
// CHECK: [[M:%.+]] = "migraphx.literal"() {value = dense<1.000000e+00> : tensor<1x64xf16>}
// CHECK: "migraphx.blocked_dot"(%arg0, {{.*}}, {{.*}}, [[M]]) {{.*}}minima = true
func.func @minima(%x: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x32xui8>} : () -> tensor<64x32xui8>
  %s = "migraphx.literal"() {value = dense<3.0> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %z = "migraphx.literal"() {value = dense<0xBEAAAAAB> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = "migraphx.unpack_int4"(%w) : (tensor<64x32xui8>) -> tensor<64x64xui8>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<64x64xui8>) -> tensor<64x64xf32>
  %2 = "migraphx.sub"(%1, %z) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = "migraphx.mul"(%2, %s) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "migraphx.transpose"(%3) {permutation = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = "migraphx.dot"(%x, %4) : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
  return %5 : tensor<3x64xf32>
}
