// RUN: mgx-opt --mgx-lower-to-linalg=arch=x86-64-v4 %s | filecheck %s
// RUN: mgx-opt --mgx-lower-to-linalg=arch=x86-64-v3 %s | filecheck %s --check-prefix=ADDED

// AVX-512 multiplies by the power of two; elsewhere it is added to the exponent.
// CHECK-NOT: arith.shli
// CHECK: mask.scalef.ps.512
// CHECK-NOT: arith.select
// ADDED: arith.shli
// ADDED-NOT: scalef
func.func @main(%x: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<64x16xf32>):
    %1 = "migraphx.exp"(%a) : (tensor<64x16xf32>) -> tensor<64x16xf32>
    "migraphx.yield"(%1) : (tensor<64x16xf32>) -> ()
  }) : (tensor<64x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}
