// Attention of bf16 multiplies pairs where the CPU does, of keys' neighbours and of two keys.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=znver4 | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=icelake-server | filecheck %s --check-prefix=WIDE

// Queries are pairs of 64 elements; eight keys meet two registers of queries. Weights are rounded,
// and their sums are those of the rounded ones. Values of two keys lie side by side.
// CHECK-LABEL: @main(
// CHECK: tensor.empty() : tensor<32x64xbf16>
// CHECK-COUNT-16: dpbf16ps.512
// CHECK: cvtneps2bf16.512
// CHECK: vector.shuffle {{.*}} : vector<16xbf16>, vector<16xbf16>
// CHECK: dpbf16ps.512
// CHECK: tensor.empty() : tensor<64x128xbf16>
// CHECK-COUNT-16: dpbf16ps.512
// CHECK: return
// WIDE-LABEL: @main(
// WIDE-NOT: dpbf16ps
// WIDE: math.fma
// WIDE: return
func.func @pairs(%q: tensor<4x96x64xbf16>, %k: tensor<4x128x64xbf16>, %v: tensor<4x128x64xbf16>) -> tensor<4x96x64xbf16> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x96x64xbf16>, %b: tensor<4x128x64xbf16>, %c: tensor<4x128x64xbf16>):
    %t = "migraphx.transpose"(%b) {permutation = array<i64: 0, 2, 1>} : (tensor<4x128x64xbf16>) -> tensor<4x64x128xbf16>
    %s = "migraphx.dot"(%a, %t) : (tensor<4x96x64xbf16>, tensor<4x64x128xbf16>) -> tensor<4x96x128xbf16>
    %w = "migraphx.convert"(%s) {target_type = f32} : (tensor<4x96x128xbf16>) -> tensor<4x96x128xf32>
    %p = "migraphx.softmax"(%w) {axis = 2 : i64} : (tensor<4x96x128xf32>) -> tensor<4x96x128xf32>
    %n = "migraphx.convert"(%p) {target_type = bf16} : (tensor<4x96x128xf32>) -> tensor<4x96x128xbf16>
    %o = "migraphx.dot"(%n, %c) : (tensor<4x96x128xbf16>, tensor<4x128x64xbf16>) -> tensor<4x96x64xbf16>
    "migraphx.yield"(%o) : (tensor<4x96x64xbf16>) -> ()
  }) {tag = "attention"} : (tensor<4x96x64xbf16>, tensor<4x128x64xbf16>, tensor<4x128x64xbf16>) -> tensor<4x96x64xbf16>
  return %0 : tensor<4x96x64xbf16>
}
