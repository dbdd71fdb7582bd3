// Few rows of a large product with 4-bit weights are taken apart to digits, and bytes are multiplied.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=znver4 | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=znver5 | filecheck %s --check-prefix=ASKED

// The row is taken apart once. Then, of three registers of columns, codes of the first four rows of
// a unit and of the others, each times three digits.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: arith.maxsi {{.*}} : vector<16xi32>
// CHECK: vector.reduction <maxsi>
// CHECK-NOT: math.roundeven
// CHECK-COUNT-6: arith.trunci {{.*}} : vector<16xi32> to vector<16xi8>
// CHECK: "flow.executable"
// CHECK: vector.transfer_read {{.*}} : tensor<11x64x48xi32>, vector<16xi32>
// CHECK-COUNT-6: vpdpbusd.512
// CHECK-NOT: permvar
// CHECK-NOT: memref.prefetch
// CHECK: return

// On Zen 5 each unit's line for each register is asked for 43 units of 192 bytes ahead: 8 KB.
// ASKED-LABEL: @main(
// ASKED: %[[CODES:.*]] = bufferization.to_buffer %{{.*}} read_only : tensor<11x64x48xi32> to memref<11x64x48xi32, strided<[3072, 48, 1], offset: ?>, "mgx.input">
// ASKED: %[[LATER:.*]] = arith.addi %{{.*}}, %c43
// ASKED-COUNT-3: memref.prefetch %[[CODES]][%{{.*}}, %[[LATER]], %{{.*}}], read, locality<3>, data
// ASKED: vector.transfer_read {{.*}} : tensor<11x64x48xi32>, vector<16xi32>
func.func @taken_apart(%x: tensor<1x512xf32>) -> tensor<1x528xf32> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<256x528xui8>} : () -> tensor<256x528xui8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<16x528xf16>} : () -> tensor<16x528xf16>
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 32 : i64} : (tensor<1x512xf32>, tensor<256x528xui8>, tensor<16x528xf16>) -> tensor<1x528xf32>
  return %0 : tensor<1x528xf32>
}
