// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=znver4 --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=generic --split-input-file | filecheck %s --check-prefix=LINALG

// Rows that only the run knows: tiles of 8 by 48, then of 4, 2 and 1. The weights are packed.
// CHECK: ml_program.global private @w0({{.*}}) : tensor<2x70x48xf32>
// CHECK: "flow.executable"
// CHECK: arith.divui %{{.*}}, %c8
// CHECK: scf.for {{.*}} step %c8
// CHECK: %[[SUMS:.*]]:24 = scf.for
// CHECK-COUNT-3: vector.transfer_read %{{.*}} {in_bounds = [true]} : tensor<2x70x48xf32>, vector<16xf32>
// CHECK-COUNT-24: math.fma
// CHECK: scf.yield
// CHECK: vector.transfer_read %{{.*}} {in_bounds = [true]} : tensor<?x96xf32>, vector<16xf32>
// CHECK: arith.addf %[[SUMS]]#0
// CHECK: vector.transfer_write %{{.*}} {in_bounds = [true]}
// CHECK: scf.for {{.*}} step %c4
// CHECK: scf.for {{.*}} -> (vector<16xf32>, {{.*}} {
// CHECK-COUNT-12: math.fma
// CHECK: scf.for {{.*}} step %c2
// CHECK-COUNT-6: math.fma
// CHECK: scf.for {{.*}} step %c1
// CHECK-COUNT-3: math.fma
// CHECK-NOT: linalg.matmul
// LINALG-NOT: flow.executable
// LINALG: linalg.matmul
func.func @dynamic_rows(%x: tensor<?x70xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<70x96xf32>} : () -> tensor<70x96xf32>
  %0 = "migraphx.group"(%x, %w, %r) ({
  ^bb0(%a: tensor<?x70xf32>, %b: tensor<70x96xf32>, %c: tensor<?x96xf32>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<?x70xf32>, tensor<70x96xf32>) -> tensor<?x96xf32>
    %2 = "migraphx.add"(%1, %c) : (tensor<?x96xf32>, tensor<?x96xf32>) -> tensor<?x96xf32>
    "migraphx.yield"(%2) : (tensor<?x96xf32>) -> ()
  }) {tag = "dot"} : (tensor<?x70xf32>, tensor<70x96xf32>, tensor<?x96xf32>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// Nine rows are tiles of 5 and of 4. The end of the only panel is masked.
// CHECK: "flow.executable"
// CHECK: scf.for
// CHECK-COUNT-5: math.fma
// CHECK: vector.transfer_write %{{[^{]*}} : vector<16xf32>, tensor<9x5xf32>
// CHECK: scf.for
// CHECK-COUNT-4: math.fma
// CHECK-NOT: scf.if
// CHECK-NOT: math.fma
// LINALG: linalg.matmul
func.func @even_tiles(%x: tensor<9x3xf32>) -> tensor<9x5xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<3x5xf32>} : () -> tensor<3x5xf32>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<9x3xf32>, %b: tensor<3x5xf32>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<9x3xf32>, tensor<3x5xf32>) -> tensor<9x5xf32>
    "migraphx.yield"(%1) : (tensor<9x5xf32>) -> ()
  }) {tag = "dot"} : (tensor<9x3xf32>, tensor<3x5xf32>) -> tensor<9x5xf32>
  return %0 : tensor<9x5xf32>
}

// -----

// Pairs of bf16 are multiplied together, and summed in f32 up to the store.
// CHECK: ml_program.global private @w0({{.*}}) : tensor<1x35x128xbf16>
// CHECK: "flow.executable"
// CHECK: scf.for
// CHECK: vector.transfer_read %{{.*}} : tensor<1x35x128xbf16>, vector<32xbf16>
// CHECK: vector.transfer_read %{{.*}} : tensor<?x70xbf16>, vector<2xbf16>
// CHECK: vector.broadcast %{{.*}} : vector<1xi32> to vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-SAME: (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"{{.*}} : (vector<16xf32>) -> vector<16xbf16>
// CHECK-NOT: arith.truncf
// LINALG-NOT: llvm.call_intrinsic
func.func @bf16(%x: tensor<?x70xbf16>) -> tensor<?x64xbf16> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<70x64xbf16>} : () -> tensor<70x64xbf16>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<?x70xbf16>, %b: tensor<70x64xbf16>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<?x70xbf16>, tensor<70x64xbf16>) -> tensor<?x64xbf16>
    "migraphx.yield"(%1) : (tensor<?x64xbf16>) -> ()
  }) {tag = "dot"} : (tensor<?x70xbf16>, tensor<70x64xbf16>) -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// -----

// Both operands are computed: the second is packed, here turned from its columns.
// CHECK: "flow.executable"
// CHECK: %[[PACKED:.*]] = tensor.empty() : tensor<80x48xf32>
// CHECK: vector.transfer_read %{{.*}} : tensor<3x48x80xf32>, vector<16xf32>
// CHECK-NOT: vector.transpose
// CHECK-COUNT-64: vector.shuffle
// CHECK: vector.transfer_write %{{.*}} : vector<16xf32>, tensor<80x48xf32>
// CHECK: math.fma
func.func @computed(%x: tensor<3x20x80xf32>, %y: tensor<3x48x80xf32>) -> tensor<3x20x48xf32> {
  %0 = "migraphx.group"(%x, %y) ({
  ^bb0(%a: tensor<3x20x80xf32>, %b: tensor<3x48x80xf32>):
    %t = "migraphx.transpose"(%b) {permutation = array<i64: 0, 2, 1>} : (tensor<3x48x80xf32>) -> tensor<3x80x48xf32>
    %1 = "migraphx.dot"(%a, %t) : (tensor<3x20x80xf32>, tensor<3x80x48xf32>) -> tensor<3x20x48xf32>
    "migraphx.yield"(%1) : (tensor<3x20x48xf32>) -> ()
  }) {tag = "dot"} : (tensor<3x20x80xf32>, tensor<3x48x80xf32>) -> tensor<3x20x48xf32>
  return %0 : tensor<3x20x48xf32>
}
