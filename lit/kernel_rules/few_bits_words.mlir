// The rule `few_bits_words` takes a matmul of its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --explain-kernels 2>&1 | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=sm_90' 2>&1 | filecheck %s --check-prefix=CODES

// CHECK: gpu::blocked_dot, dot of 4-bit codes: few_bits_words (

// A code without an exponent is a subnormal number. No `or` and no conversion is left, and the sum is
// multiplied by the codes' unit at the end.
// CODES: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CODES: arith.andi {{.*}} : i32
// CODES-NOT: arith.ori
// CODES-NOT: arith.uitofp
// CODES: arith.bitcast {{.*}} : i32 to f32
// CODES: math.fma
// CODES: linalg.generic
// CODES: arith.mulf
func.func @few_bits_words(%x: tensor<1x64xf16>) -> tensor<1x48xf16> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<32x48xui8>} : () -> tensor<32x48xui8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x48xf16>} : () -> tensor<2x48xf16>
  %0 = "migraphx.group"(%x, %w, %s) ({
  ^bb0(%a: tensor<1x64xf16>, %b: tensor<32x48xui8>, %c: tensor<2x48xf16>):
    %1 = "migraphx.blocked_dot"(%a, %b, %c) {block_size = 32 : i64} : (tensor<1x64xf16>, tensor<32x48xui8>, tensor<2x48xf16>) -> tensor<1x48xf16>
    "migraphx.yield"(%1) : (tensor<1x48xf16>) -> ()
  }) {tag = "blocked_dot"} : (tensor<1x64xf16>, tensor<32x48xui8>, tensor<2x48xf16>) -> tensor<1x48xf16>
  return %0 : tensor<1x48xf16>
}
