// RUN: mgx-opt %s --mgx-pack-weights="gpu=true" --split-input-file | filecheck %s

// Rows lie in a matrix of their own, and f16 stays that.
// CHECK-LABEL: @rows
// CHECK: [[X:%.+]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6, 64>}
// CHECK: [[Y:%.+]] = "migraphx.blocked_dot"([[X]], {{.*}}) {{.*}}block_size = 32
// CHECK-SAME: (tensor<6x64xf16>, tensor<32x64xui8>, tensor<2x64xf16>, tensor<2x64xi8>) -> tensor<6x64xf16>
// CHECK: "migraphx.reshape"([[Y]]) {dims = array<i64: 2, 3, 64>}
func.func @rows(%x: tensor<2x3x64xf16>) -> tensor<2x3x64xf16> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x32xui8>} : () -> tensor<64x32xui8>
  %s = "migraphx.literal"() {value = dense<[[0.5, 2.0]]> : tensor<1x2xf16>} : () -> tensor<1x2xf16>
  %0 = "migraphx.unpack_int4"(%w) : (tensor<64x32xui8>) -> tensor<64x64xui8>
  %1 = "migraphx.convert"(%0) {target_type = f16} : (tensor<64x64xui8>) -> tensor<64x64xf16>
  %2 = "migraphx.unsqueeze"(%s) {axes = array<i64: 2>} : (tensor<1x2xf16>) -> tensor<1x2x1xf16>
  %3 = "migraphx.multibroadcast"(%2) {out_lens = array<i64: 64, 2, 32>} : (tensor<1x2x1xf16>) -> tensor<64x2x32xf16>
  %4 = "migraphx.reshape"(%3) {dims = array<i64: 64, 64>} : (tensor<64x2x32xf16>) -> tensor<64x64xf16>
  %5 = "migraphx.mul"(%1, %4) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  %6 = "migraphx.transpose"(%5) {permutation = array<i64: 1, 0>} : (tensor<64x64xf16>) -> tensor<64x64xf16>
  %7 = "migraphx.multibroadcast"(%6) {out_lens = array<i64: 2, 64, 64>} : (tensor<64x64xf16>) -> tensor<2x64x64xf16>
  %8 = "migraphx.dot"(%x, %7) : (tensor<2x3x64xf16>, tensor<2x64x64xf16>) -> tensor<2x3x64xf16>
  return %8 : tensor<2x3x64xf16>
}

// -----

// An input in f16 that was widened for the sums is read in f16, where results are f16 again.
// CHECK-LABEL: @widened(
// CHECK: "migraphx.blocked_dot"(%arg0, {{.*}}) {{.*}} : (tensor<1x64xf16>, {{.*}}) -> tensor<1x64xf16>
func.func @widened(%x: tensor<1x64xf16>) -> tensor<1x64xf16> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %1 = "migraphx.mul"(%0, %s) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "migraphx.convert"(%x) {target_type = f32} : (tensor<1x64xf16>) -> tensor<1x64xf32>
  %3 = "migraphx.dot"(%2, %1) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  %4 = "migraphx.convert"(%3) {target_type = f16, overflow = true} : (tensor<1x64xf32>) -> tensor<1x64xf16>
  return %4 : tensor<1x64xf16>
}

// -----

// The same behind a reshape.
// CHECK-LABEL: @reshaped(
// CHECK: [[X:%.+]] = "migraphx.reshape"(%arg0) {{.*}} : (tensor<1x4x16xf16>) -> tensor<1x64xf16>
// CHECK: "migraphx.blocked_dot"([[X]], {{.*}}) {{.*}} -> tensor<1x64xf16>
func.func @reshaped(%x: tensor<1x4x16xf16>) -> tensor<1x64xf16> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %1 = "migraphx.mul"(%0, %s) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "migraphx.convert"(%x) {target_type = f32} : (tensor<1x4x16xf16>) -> tensor<1x4x16xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 1, 64>} : (tensor<1x4x16xf32>) -> tensor<1x64xf32>
  %4 = "migraphx.dot"(%3, %1) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  %5 = "migraphx.convert"(%4) {target_type = f16, overflow = true} : (tensor<1x64xf32>) -> tensor<1x64xf16>
  return %5 : tensor<1x64xf16>
}

// -----

// And behind the transpose of an attention's heads.
// CHECK-LABEL: @transposed(
// CHECK: [[T:%.+]] = "migraphx.transpose"(%arg0) {{.*}} : (tensor<1x4x3x16xf16>) -> tensor<1x3x4x16xf16>
// CHECK: [[X:%.+]] = "migraphx.reshape"([[T]])
// CHECK: "migraphx.blocked_dot"([[X]], {{.*}}) {{.*}} -> tensor<3x64xf16>
func.func @transposed(%x: tensor<1x4x3x16xf16>) -> tensor<3x64xf16> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %1 = "migraphx.mul"(%0, %s) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "migraphx.convert"(%x) {target_type = f32} : (tensor<1x4x3x16xf16>) -> tensor<1x4x3x16xf32>
  %3 = "migraphx.transpose"(%2) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x3x16xf32>) -> tensor<1x3x4x16xf32>
  %4 = "migraphx.reshape"(%3) {dims = array<i64: 3, 64>} : (tensor<1x3x4x16xf32>) -> tensor<3x64xf32>
  %5 = "migraphx.dot"(%4, %1) : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
  %6 = "migraphx.convert"(%5) {target_type = f16, overflow = true} : (tensor<3x64xf32>) -> tensor<3x64xf16>
  return %6 : tensor<3x64xf16>
}

// -----

// A result in f32 keeps its wide input.
// CHECK-LABEL: @widened_result(
// CHECK: [[X:%.+]] = "migraphx.convert"(%arg0)
// CHECK: "migraphx.blocked_dot"([[X]], {{.*}}) {{.*}} -> tensor<1x64xf32>
func.func @widened_result(%x: tensor<1x64xf16>) -> tensor<1x64xf32> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %1 = "migraphx.mul"(%0, %s) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "migraphx.convert"(%x) {target_type = f32} : (tensor<1x64xf16>) -> tensor<1x64xf32>
  %3 = "migraphx.dot"(%2, %1) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  return %3 : tensor<1x64xf32>
}

// -----

// An input that was rounded to f16 is read rounded.
// CHECK-LABEL: @rounded(
// CHECK: [[X:%.+]] = "migraphx.convert"(%arg0)
// CHECK: "migraphx.blocked_dot"([[X]], {{.*}}) {{.*}} -> tensor<1x64xf16>
func.func @rounded(%x: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf16>} : () -> tensor<64x64xf16>
  %0 = "migraphx.convert"(%w) {target_type = f16} : (tensor<64x64xi8>) -> tensor<64x64xf16>
  %1 = "migraphx.mul"(%0, %s) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  %2 = "migraphx.convert"(%x) {target_type = f16} : (tensor<1x64xf32>) -> tensor<1x64xf16>
  %3 = "migraphx.dot"(%2, %1) : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  %4 = "migraphx.convert"(%3) {target_type = f32, overflow = true} : (tensor<1x64xf16>) -> tensor<1x64xf32>
  return %4 : tensor<1x64xf32>
}

// -----

// A conversion that saturates is another one than that of blocked_dot.
// CHECK-LABEL: @clipped(
// CHECK: [[X:%.+]] = "migraphx.convert"(%arg0)
// CHECK: "migraphx.blocked_dot"([[X]], {{.*}}) {{.*}} -> tensor<1x64xf32>
func.func @clipped(%x: tensor<1x64xf16>) -> tensor<1x64xf16> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %1 = "migraphx.mul"(%0, %s) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "migraphx.convert"(%x) {target_type = f32} : (tensor<1x64xf16>) -> tensor<1x64xf32>
  %3 = "migraphx.dot"(%2, %1) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  %4 = "migraphx.convert"(%3) {target_type = f16} : (tensor<1x64xf32>) -> tensor<1x64xf16>
  return %4 : tensor<1x64xf16>
}

// -----

// Blocks of 8 rows are no multiple of what a matrix instruction takes.
// CHECK-LABEL: @short_blocks
// CHECK-NOT: migraphx.blocked_dot
// CHECK: "migraphx.dot"
func.func @short_blocks(%x: tensor<3x16xf32>) -> tensor<3x512xf32> {
  %w = "migraphx.literal"() {value = dense<17> : tensor<512x16xi8>} : () -> tensor<512x16xi8>
  %s = "migraphx.literal"() {value = dense<[[0.5, 2.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %1 = "migraphx.convert"(%w) {target_type = f32} : (tensor<512x16xi8>) -> tensor<512x16xf32>
  %2 = "migraphx.unsqueeze"(%s) {axes = array<i64: 2>} : (tensor<1x2xf32>) -> tensor<1x2x1xf32>
  %3 = "migraphx.multibroadcast"(%2) {out_lens = array<i64: 512, 2, 8>} : (tensor<1x2x1xf32>) -> tensor<512x2x8xf32>
  %4 = "migraphx.reshape"(%3) {dims = array<i64: 512, 16>} : (tensor<512x2x8xf32>) -> tensor<512x16xf32>
  %5 = "migraphx.mul"(%1, %4) : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
  %6 = "migraphx.transpose"(%5) {permutation = array<i64: 1, 0>} : (tensor<512x16xf32>) -> tensor<16x512xf32>
  %7 = "migraphx.dot"(%x, %6) : (tensor<3x16xf32>, tensor<16x512xf32>) -> tensor<3x512xf32>
  return %7 : tensor<3x512xf32>
}

// -----

// Floats of 8 bits stay weights of the product.
// CHECK-LABEL: @floats
// CHECK-NOT: migraphx.blocked_dot
// CHECK: "migraphx.dot"
func.func @floats(%x: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %w = "migraphx.literal"() {value = dense<1.0> : tensor<64x64xf8E4M3FN>} : () -> tensor<64x64xf8E4M3FN>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %1 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x64xf8E4M3FN>) -> tensor<64x64xf32>
  %2 = "migraphx.mul"(%1, %s) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = "migraphx.dot"(%x, %2) : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
  return %3 : tensor<3x64xf32>
}
