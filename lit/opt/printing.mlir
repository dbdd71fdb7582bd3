// The printing flags.
// RUN: mgx-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: mgx-opt %s --mlir-print-debuginfo | filecheck %s --check-prefix=DEBUG
// RUN: mgx-opt %s --mlir-print-debuginfo --mlir-print-local-scope | filecheck %s --check-prefix=LOCAL
// RUN: mgx-opt %s --mlir-elide-elementsattrs-if-larger=4 | filecheck %s --check-prefix=ELIDE
// RUN: mgx-opt %s --verify-roundtrip --verify-each=false --mgx-dead-code-elimination | filecheck %s
// RUN: mgx-opt < %s | filecheck %s
// RUN: mgx-opt %s | mgx-opt - | filecheck %s

// GENERIC: "func.func"()
// GENERIC: "func.return"(%{{.*}})
// DEBUG: printing.mlir":
// DEBUG: loc("a node")
// LOCAL: loc("a node")
// ELIDE: dense_resource<__elided__> : tensor<8xi32>
// ELIDE: dense<[1, 2]> : tensor<2xi32>
// CHECK: dense<[1, 2, 3, 4, 5, 6, 7, 8]>
func.func @f() -> (tensor<8xi32>, tensor<2xi32>) {
  %0 = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32> loc("a node")
  %1 = arith.constant dense<[1, 2]> : tensor<2xi32>
  return %0, %1 : tensor<8xi32>, tensor<2xi32>
}
