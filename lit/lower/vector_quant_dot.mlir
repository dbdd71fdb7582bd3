// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=znver4 | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=haswell | filecheck %s --check-prefix=PAIRS
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=neoverse-v1 | filecheck %s --check-prefix=SIGNED
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=a64fx | filecheck %s --check-prefix=PLAIN
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=generic | filecheck %s --check-prefix=LINALG

// Groups of four bytes of a row times four of a column; i8 rows come with 128 added, which what the
// sums begin with takes off again: it stands behind the panel's 8 groups. The last group is masked.
// CHECK: ml_program.global private @w0({{.*}}) : tensor<1x9x192xi8>
// CHECK: "flow.executable"
// CHECK: vector.bitcast %{{.*}} : vector<64xi8> to vector<16xi32>
// CHECK: scf.for
// CHECK: vector.transfer_read %{{.*}} {in_bounds = [true]} : tensor<5x30xi8>, vector<4xi8>
// CHECK: arith.xori
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"({{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// CHECK: scf.yield
// CHECK: vector.transfer_read %{{.*}} : tensor<5x30xi8>, vector<4xi8>
// CHECK: arith.sitofp
// CHECK: arith.mulf
// Weights so small that two products fit 16 bits are multiplied in pairs, which are then added up.
// PAIRS: ml_program.global private @w0({{.*}}) : tensor<3x10x64xi8>
// PAIRS: %[[PAIRS:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"({{.*}}) : (vector<32xi8>, vector<32xi8>) -> vector<16xi16>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[PAIRS]], {{.*}}) : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
// SIGNED: ml_program.global private @w0({{.*}}) : tensor<5x8x32xi8>
// SIGNED-NOT: arith.xori
// SIGNED: llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"({{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
// PLAIN: tensor<5x30x8xi8>
// PLAIN: arith.muli
// LINALG-NOT: flow.executable
// LINALG: linalg.matmul
func.func @main(%x: tensor<5x30xi8>, %s: tensor<5x40xf32>) -> tensor<5x40xf32> {
  %w = "migraphx.literal"() {value = dense<2> : tensor<30x40xi8>} : () -> tensor<30x40xi8>
  %0 = "migraphx.group"(%x, %w, %s) ({
  ^bb0(%a: tensor<5x30xi8>, %b: tensor<30x40xi8>, %c: tensor<5x40xf32>):
    %1 = "migraphx.quant_dot"(%a, %b) : (tensor<5x30xi8>, tensor<30x40xi8>) -> tensor<5x40xi32>
    %2 = "migraphx.convert"(%1) {target_type = f32} : (tensor<5x40xi32>) -> tensor<5x40xf32>
    %3 = "migraphx.mul"(%2, %c) : (tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xf32>
    "migraphx.yield"(%3) : (tensor<5x40xf32>) -> ()
  }) {tag = "quant_dot"} : (tensor<5x30xi8>, tensor<30x40xi8>, tensor<5x40xf32>) -> tensor<5x40xf32>
  return %0 : tensor<5x40xf32>
}
