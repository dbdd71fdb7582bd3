// Weights beside the IR: written with what refers to them, read again, missed when absent.
// RUN: mgx-opt %s --mgx-propagate-constant --mgx-dead-code-elimination --save-weights %t.npz -o %t.mlir
// RUN: filecheck %s < %t.mlir
// RUN: mgx-opt %t.mlir --weights %t.npz --mgx-propagate-constant --mgx-simplify-algebra | filecheck %s
// RUN: %python -c "import numpy as np; z = np.load('%t.npz'); a, = z.values(); print(a[:3].tolist(), a.size)" | filecheck %s --check-prefix=ARRAY
// RUN: sed -e 's/%arg0, %0)/%0, %0)/' %t.mlir > %t.neg.mlir
// RUN: not mgx-opt %t.neg.mlir --mgx-propagate-constant 2>&1 | filecheck %s --check-prefix=ABSENT
// RUN: not mgx-opt %s --weights %s 2>&1 | filecheck %s --check-prefix=NOT-WEIGHTS

// CHECK: %[[W:.*]] = "migraphx.literal"() {key = "{{[0-9a-f]+}}"} : () -> tensor<20xi32>
// CHECK: "migraphx.add"(%{{.*}}, %[[W]])
// ARRAY: [-1, -2, -3] 20
// ABSENT: error: pass 'mgx-propagate-constant' failed: weight '{{[0-9a-f]+}}' is not in the program's weight store
// ABSENT: note: pass the weights that belong to this module (mgx-opt: --weights f.npz)
// NOT-WEIGHTS: error: '{{.*}}weights.mlir' is not an .npz of weights
func.func @main(%x: tensor<20xi32>) -> tensor<20xi32> {
  %0 = "migraphx.literal"() {value = dense<[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]> : tensor<20xi32>} : () -> tensor<20xi32>
  %1 = "migraphx.neg"(%0) : (tensor<20xi32>) -> tensor<20xi32>
  %2 = "migraphx.add"(%x, %1) : (tensor<20xi32>, tensor<20xi32>) -> tensor<20xi32>
  return %2 : tensor<20xi32>
}
