// A row by 8-bit weights asks for its codes 4 KB ahead on Zen 5.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=znver5 | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=znver4 | filecheck %s --check-prefix=HARDWARE

// A unit is eight rows of 48 bytes, six lines; 4 KB are 11 units.
// CHECK-LABEL: @main(
// CHECK: %[[CODES:.*]] = bufferization.to_buffer %{{.*}} read_only : tensor<11x512x48xi8> to memref<11x512x48xi8, strided<[24576, 48, 1], offset: ?>, "mgx.input">
// CHECK: arith.addi %{{.*}}, %c11
// CHECK-COUNT-6: memref.prefetch %[[CODES]]
// CHECK-NOT: memref.prefetch
// CHECK: vector.transfer_read {{.*}} : tensor<11x512x48xi8>, vector<16xi8>
// CHECK: return
// HARDWARE-LABEL: @main(
// HARDWARE-NOT: memref.prefetch
// HARDWARE: return
func.func @bytes(%x: tensor<1x512xf32>) -> tensor<1x528xf32> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<512x528xi8>} : () -> tensor<512x528xi8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<16x528xf16>} : () -> tensor<16x528xf16>
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 32 : i64, bits = 8 : i64} : (tensor<1x512xf32>, tensor<512x528xi8>, tensor<16x528xf16>) -> tensor<1x528xf32>
  return %0 : tensor<1x528xf32>
}
