// A row by 8-bit weights is taken apart, and asks for its codes 8 KB ahead on Zen 5.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=znver5 | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=znver4 | filecheck %s --check-prefix=HARDWARE
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=skylake-avx512 | filecheck %s --check-prefix=WIDENED

// Four codes of a column are neighbours. A unit is two rows of 128 bytes, four lines; 8 KB are 32
// units. Their signs are flipped: the instruction takes u8.
// CHECK-LABEL: @main(
// CHECK: vector.reduction <maxsi>
// CHECK: %[[CODES:.*]] = bufferization.to_buffer %{{.*}} read_only : tensor<17x128x128xi8> to memref<17x128x128xi8, strided<[16384, 128, 1], offset: ?>, "mgx.input">
// CHECK: arith.addi %{{.*}}, %c32
// CHECK-COUNT-4: memref.prefetch %[[CODES]]
// CHECK: vector.transfer_read {{.*}} : tensor<17x128x128xi8>, vector<64xi8>
// CHECK: arith.xori
// CHECK: vpdpbusd.512
// CHECK: return
// HARDWARE-LABEL: @main(
// HARDWARE-NOT: memref.prefetch
// HARDWARE: vpdpbusd.512
// HARDWARE: return
// WIDENED-LABEL: @main(
// WIDENED: vector.transfer_read {{.*}}xi8>, vector<16xi8>
// WIDENED: math.fma
// WIDENED: return
func.func @bytes(%x: tensor<1x512xf32>) -> tensor<1x528xf32> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<512x528xi8>} : () -> tensor<512x528xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<16x528xf16>} : () -> tensor<16x528xf16>
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 32 : i64, bits = 8 : i64} : (tensor<1x512xf32>, tensor<512x528xi8>, tensor<16x528xf16>) -> tensor<1x528xf32>
  return %0 : tensor<1x528xf32>
}
