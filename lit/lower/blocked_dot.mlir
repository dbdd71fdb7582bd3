// Weights of few bits are widened inside of their product.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s

// One row: eight codes of 48 columns in three registers; the scale comes in behind a block.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} : tensor<1x8x48xi32>, vector<16xi32>
// CHECK: arith.shrui {{.*}} : vector<16xi32>
// CHECK: llvm.x86.avx512.permvar.sf.512
// CHECK-COUNT-24: math.fma
// CHECK: scf.yield
// CHECK: math.fma
// CHECK-NOT: linalg
// CHECK-NOT: flow.executable
// CHECK: return
func.func @one_row(%x: tensor<1x64xf32>) -> tensor<1x48xf32> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<32x48xui8>} : () -> tensor<32x48xui8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x48xf16>} : () -> tensor<2x48xf16>
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 32 : i64} : (tensor<1x64xf32>, tensor<32x48xui8>, tensor<2x48xf16>) -> tensor<1x48xf32>
  return %0 : tensor<1x48xf32>
}

// -----

// With zero points a code is the end of a power of two, which the zero point is taken off with.
// CHECK-LABEL: @main(
// CHECK: vector.transfer_read {{.*}} : tensor<1x8x48xi32>, vector<16xi32>
// CHECK: arith.andi {{.*}} : vector<16xi32>
// CHECK: arith.ori {{.*}} : vector<16xi32>
// CHECK: arith.bitcast {{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: arith.subf
// CHECK-COUNT-24: math.fma
// CHECK-NOT: linalg
// CHECK: return
func.func @zero_points(%x: tensor<1x64xf32>) -> tensor<1x48xf32> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<32x48xui8>} : () -> tensor<32x48xui8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x48xf16>} : () -> tensor<2x48xf16>
  %z = "migraphx.literal"() {value = dense<3> : tensor<2x48xi8>} : () -> tensor<2x48xi8>
  %0 = "migraphx.blocked_dot"(%x, %w, %s, %z) {block_size = 32 : i64} : (tensor<1x64xf32>, tensor<32x48xui8>, tensor<2x48xf16>, tensor<2x48xi8>) -> tensor<1x48xf32>
  return %0 : tensor<1x48xf32>
}
