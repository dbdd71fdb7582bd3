// nonzero without loops of our own, and with them.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=generic --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s --check-prefix=VECTOR

// The running count, the number of elements, then the place of each by bisection.
// CHECK-LABEL: @main(
// CHECK: arith.cmpf une
// CHECK: "iree_linalg_ext.scan"
// CHECK: iterator_types = ["reduction"]
// CHECK: tensor.empty(%{{.*}}) : tensor<?xi64>
// CHECK: scf.for
// CHECK: tensor.empty(%{{.*}}) : tensor<2x?xi64>
// Places are packed by vectors; of one part alone nothing is summed, and quotients come of
// products. Their number is read where the kernel wrote it.
// VECTOR-LABEL: @main(
// VECTOR: "flow.dispatch"
// VECTOR-NOT: tensor.extract
// VECTOR: "hal.buffer.load"
// VECTOR: "flow.dispatch"
// VECTOR-NEXT: return
// VECTOR: "flow.executable"
// VECTOR: llvm.call_intrinsic "llvm.experimental.vector.compress"({{.*}}) : (vector<16xi32>, vector<16xi1>, vector<16xi32>) -> vector<16xi32>
// VECTOR: "flow.executable"
// VECTOR: math.floor
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x?xi64> {
  %0 = "migraphx.nonzero"(%x) {padded = false} : (tensor<2x3xf32>) -> tensor<2x?xi64>
  return %0 : tensor<2x?xi64>
}
