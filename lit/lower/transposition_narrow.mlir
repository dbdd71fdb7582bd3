// RUN: mgx-opt --mgx-lower-to-linalg=arch=neoverse-v1 %s | filecheck %s

// Registers of 128 bits hold two elements of 64 bits: squares of two.
// CHECK-LABEL: func.func @main(
// CHECK: vector.shuffle {{.*}} [0, 2] : vector<2xi64>, vector<2xi64>
// CHECK-NEXT: vector.shuffle {{.*}} [1, 3] : vector<2xi64>, vector<2xi64>
func.func @main(%x: tensor<?x?xi64>) -> tensor<?x?xi64> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<?x?xi64>):
    %1 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<?x?xi64>) -> tensor<?x?xi64>
    "migraphx.yield"(%1) : (tensor<?x?xi64>) -> ()
  }) {tag = "transpose"} : (tensor<?x?xi64>) -> tensor<?x?xi64>
  return %0 : tensor<?x?xi64>
}
