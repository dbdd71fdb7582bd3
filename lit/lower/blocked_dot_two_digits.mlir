// Many rows of a large product with 4-bit weights are taken apart to two digits.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=znver4 | filecheck %s --check-prefix=VNNI
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg='arch=znver4 fast_math=false' | filecheck %s --check-prefix=EXACT
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg='arch=znver4 row-bits=8' | filecheck %s --check-prefix=BYTE
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=haswell | filecheck %s --check-prefix=EXACT

// Panels have two registers of columns; three rows, two digits each, meet the codes of four rows.
// VNNI-LABEL: @main(
// VNNI: "flow.executable"
// VNNI: vector.reduction <maxsi>
// VNNI-COUNT-4: arith.trunci {{.*}} : vector<16xi32> to vector<16xi8>
// VNNI: "flow.executable"
// VNNI: vector.transfer_read {{.*}} : tensor<17x64x32xi32>, vector<16xi32>
// VNNI-COUNT-12: vpdpbusd.512
// VNNI-NOT: fma
// VNNI: arith.shli
// VNNI: return
// With 8 bits a row has one digit, and five rows meet the codes of four rows.
// BYTE-LABEL: @main(
// BYTE: "flow.executable"
// BYTE-COUNT-2: arith.trunci {{.*}} : vector<16xi32> to vector<16xi8>
// BYTE-NOT: arith.trunci {{.*}}xi8>
// BYTE: "flow.executable"
// BYTE-COUNT-10: vpdpbusd.512
// BYTE-NOT: arith.shli
// BYTE: return
// EXACT-LABEL: @main(
// EXACT-NOT: vpdpbusd
// EXACT-NOT: arith.trunci {{.*}}xi8>
// EXACT: math.fma
// EXACT: return
func.func @two_digits(%x: tensor<64x512xf32>) -> tensor<64x528xf32> {
  %w = "migraphx.literal"() {value = dense<18> : tensor<256x528xui8>} : () -> tensor<256x528xui8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<16x528xf16>} : () -> tensor<16x528xf16>
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 32 : i64} : (tensor<64x512xf32>, tensor<256x528xui8>, tensor<16x528xf16>) -> tensor<64x528xf32>
  return %0 : tensor<64x528xf32>
}
