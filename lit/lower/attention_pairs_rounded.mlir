// Attention of f32 multiplies pairs of bf16 with 8 bits for rows, where the CPU has pairs and no tile registers.
// RUN: mgx-opt %s --mgx-lower-to-linalg='arch=znver4 row-bits=8' | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=znver4 | filecheck %s --check-prefix=WIDE
// RUN: mgx-opt %s --mgx-lower-to-linalg='arch=znver4 row-bits=8 fast_math=false' | filecheck %s --check-prefix=WIDE
// RUN: mgx-opt %s --mgx-lower-to-linalg='arch=sapphirerapids row-bits=8' | filecheck %s --check-prefix=WIDE

// Queries, keys and values of a block of 64 keys are rounded.
// CHECK-LABEL: @main(
// CHECK: tensor.empty() : tensor<32x64xbf16>
// CHECK-COUNT-32: cvtneps2bf16.512
// CHECK: tensor.empty() : tensor<64x64xbf16>
// CHECK-COUNT-4: cvtneps2bf16.512
// CHECK-COUNT-16: dpbf16ps.512
// CHECK: tensor.empty() : tensor<32x128xbf16>
// CHECK-COUNT-16: dpbf16ps.512
// CHECK: return
// WIDE-LABEL: @main(
// WIDE-NOT: bf16ps
// WIDE: math.fma
// WIDE: return
func.func @rounded(%q: tensor<4x96x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x64xf32>) -> tensor<4x96x64xf32> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<4x96x64xf32>, %b: tensor<4x128x64xf32>, %c: tensor<4x128x64xf32>):
    %t = "migraphx.transpose"(%b) {permutation = array<i64: 0, 2, 1>} : (tensor<4x128x64xf32>) -> tensor<4x64x128xf32>
    %s = "migraphx.dot"(%a, %t) : (tensor<4x96x64xf32>, tensor<4x64x128xf32>) -> tensor<4x96x128xf32>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<4x96x128xf32>) -> tensor<4x96x128xf32>
    %o = "migraphx.dot"(%p, %c) : (tensor<4x96x128xf32>, tensor<4x128x64xf32>) -> tensor<4x96x64xf32>
    "migraphx.yield"(%o) : (tensor<4x96x64xf32>) -> ()
  }) {tag = "attention"} : (tensor<4x96x64xf32>, tensor<4x128x64xf32>, tensor<4x128x64xf32>) -> tensor<4x96x64xf32>
  return %0 : tensor<4x96x64xf32>
}
