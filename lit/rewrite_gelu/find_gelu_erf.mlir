// RUN: mgx-opt %s --mgx-rewrite-gelu=fast-math --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-gelu --split-input-file | filecheck %s --check-prefix=EXACT

// CHECK-LABEL: @gelu
// CHECK-NOT: migraphx.erf
// CHECK: %[[E:.*]] = "migraphx.exp"
// CHECK: %[[S:.*]] = "migraphx.add"(%[[E]],
// CHECK: "migraphx.div"(%arg0, %[[S]])
// EXACT-LABEL: @gelu
// EXACT: migraphx.erf
func.func @gelu(%x: tensor<16xf16>) -> tensor<16xf16> {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<16xf16>} : () -> tensor<16xf16>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<16xf16>} : () -> tensor<16xf16>
  %r = "migraphx.literal"() {value = dense<0.707> : tensor<16xf16>} : () -> tensor<16xf16>
  %0 = "migraphx.mul"(%x, %r) : (tensor<16xf16>, tensor<16xf16>) -> tensor<16xf16>
  %1 = "migraphx.erf"(%0) : (tensor<16xf16>) -> tensor<16xf16>
  %2 = "migraphx.add"(%1, %one) : (tensor<16xf16>, tensor<16xf16>) -> tensor<16xf16>
  %3 = "migraphx.mul"(%x, %2) : (tensor<16xf16>, tensor<16xf16>) -> tensor<16xf16>
  %4 = "migraphx.mul"(%3, %half) : (tensor<16xf16>, tensor<16xf16>) -> tensor<16xf16>
  return %4 : tensor<16xf16>
}

// -----

// Divisions in place of products, bf16, a broadcast constant.
// CHECK-LABEL: @divided
// CHECK-NOT: migraphx.erf
// CHECK: migraphx.exp
func.func @divided(%x: tensor<2x8xbf16>) -> tensor<2x8xbf16> {
  %t = "migraphx.literal"() {value = dense<2.0> : tensor<1xbf16>} : () -> tensor<1xbf16>
  %two = "migraphx.multibroadcast"(%t) {out_lens = array<i64: 2, 8>} : (tensor<1xbf16>) -> tensor<2x8xbf16>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<2x8xbf16>} : () -> tensor<2x8xbf16>
  %r = "migraphx.literal"() {value = dense<1.4142> : tensor<2x8xbf16>} : () -> tensor<2x8xbf16>
  %0 = "migraphx.div"(%x, %r) : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
  %1 = "migraphx.erf"(%0) : (tensor<2x8xbf16>) -> tensor<2x8xbf16>
  %2 = "migraphx.add"(%one, %1) : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
  %3 = "migraphx.mul"(%x, %2) : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
  %4 = "migraphx.div"(%3, %two) : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return %4 : tensor<2x8xbf16>
}

// -----

// 32 bits would show the difference.
// CHECK-LABEL: @f32
// CHECK: migraphx.erf
func.func @f32(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %r = "migraphx.literal"() {value = dense<0.707106769> : tensor<8xf32>} : () -> tensor<8xf32>
  %0 = "migraphx.mul"(%x, %r) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = "migraphx.erf"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "migraphx.add"(%1, %one) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = "migraphx.mul"(%x, %half) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = "migraphx.mul"(%3, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// Not x / sqrt(2).
// CHECK-LABEL: @scale
// CHECK: migraphx.erf
func.func @scale(%x: tensor<8xf16>) -> tensor<8xf16> {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<8xf16>} : () -> tensor<8xf16>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<8xf16>} : () -> tensor<8xf16>
  %0 = "migraphx.erf"(%x) : (tensor<8xf16>) -> tensor<8xf16>
  %1 = "migraphx.add"(%0, %one) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %2 = "migraphx.mul"(%x, %half) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %3 = "migraphx.mul"(%2, %1) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  return %3 : tensor<8xf16>
}

// -----

// In f32 between 16-bit floats.
// CHECK-LABEL: @widened
// CHECK-NOT: migraphx.erf
// CHECK: migraphx.exp
func.func @widened(%x: tensor<16xf16>) -> tensor<16xf16> {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<16xf32>} : () -> tensor<16xf32>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<16xf32>} : () -> tensor<16xf32>
  %r = "migraphx.literal"() {value = dense<0.707> : tensor<16xf32>} : () -> tensor<16xf32>
  %w = "migraphx.convert"(%x) {target_type = f32} : (tensor<16xf16>) -> tensor<16xf32>
  %0 = "migraphx.mul"(%w, %r) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %1 = "migraphx.erf"(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = "migraphx.add"(%1, %one) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %3 = "migraphx.mul"(%w, %2) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %4 = "migraphx.mul"(%3, %half) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %5 = "migraphx.convert"(%4) {target_type = f16} : (tensor<16xf32>) -> tensor<16xf16>
  return %5 : tensor<16xf16>
}
