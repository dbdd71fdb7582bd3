// A failed pass leaves the module, its weights and the pipeline, which fail again.
// RUN: mgx-opt %s --mgx-propagate-constant --save-weights %t.in.npz -o %t.in.mlir
// RUN: not mgx-opt %t.in.mlir --weights %t.in.npz --cse --mgx-lower-to-linalg --symbol-dce --mlir-pass-pipeline-crash-reproducer=%t.mlir --mlir-print-ir-after-failure 2>&1 | filecheck %s --check-prefix=FAILS
// RUN: filecheck %s --check-prefix=FILE < %t.mlir
// RUN: not mgx-opt %t.mlir --run-reproducer 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: not mgx-opt %t.in.mlir --weights %t.in.npz --cse --mgx-lower-to-linalg --symbol-dce --mlir-pass-pipeline-crash-reproducer=%t.local.mlir --mlir-pass-pipeline-local-reproducer 2>&1 | filecheck %s --check-prefix=LOCAL-FAILS
// RUN: filecheck %s --check-prefix=LOCAL < %t.local.mlir
// RUN: mgx-opt %t.in.mlir --weights %t.in.npz --mgx-propagate-constant --disable-pattern=find_transpose --mlir-generate-reproducer=%t.asked.mlir -o %t
// RUN: filecheck %s --check-prefix=ASKED < %t.asked.mlir
// RUN: mgx-opt %t.asked.mlir --run-reproducer --dump-pass-pipeline 2>&1 | filecheck %s --check-prefix=RUNS
// RUN: not mgx-opt %s --run-reproducer --cse 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not mgx-opt %s --run-reproducer 2>&1 | filecheck %s --check-prefix=NONE

// FAILS: IR Dump After LowerToLinalg Failed: mgx-lower-to-linalg //----- //
// FAILS: error: pass 'mgx-lower-to-linalg' failed: 2 operations cannot be compiled for cpu
// FAILS: note: pipeline failed while executing [`LowerToLinalg` on 'builtin.module' operation]: reproducer generated at `{{.*}}.mlir`
// FILE: "migraphx.literal"() {key = "{{[0-9a-f]+}}"}
// FILE: {-#
// FILE-NEXT: external_resources: {
// FILE-NEXT: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse,mgx-lower-to-linalg,symbol-dce)",
// FILE-NEXT: disable_threading: true,
// FILE-NEXT: verify_each: true
// FILE: weights: "{{.*}}.npz"
// AGAIN: error: pass 'mgx-lower-to-linalg' failed: 2 operations cannot be compiled for cpu
// AGAIN-NOT: not in the program's weight store
// LOCAL-FAILS: note: reproduce with: mgx-opt --run-reproducer {{.*}}.local.mlir
// LOCAL: pipeline: "builtin.module(mgx-lower-to-linalg)"
// ASKED: disabled_patterns: "find_transpose"
// RUNS: mgx-propagate-constant
// RUNS: %{{.*}} = "migraphx.literal"() {key =
// BOTH: error: expected either --run-reproducer or a pipeline, got both
// NONE: error: expected a reproducer: the input names no pipeline to run
func.func @main(%x: tensor<20xi32>) -> (tensor<2xf32>, tensor<20xi32>) {
  %s = "migraphx.random_seed"() {dtype = ui64} : () -> tensor<ui64>
  %d = "migraphx.literal"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.random_uniform"(%s, %d) : (tensor<ui64>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.literal"() {value = dense<[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]> : tensor<20xi32>} : () -> tensor<20xi32>
  %2 = "migraphx.neg"(%1) : (tensor<20xi32>) -> tensor<20xi32>
  %3 = "migraphx.add"(%x, %2) : (tensor<20xi32>, tensor<20xi32>) -> tensor<20xi32>
  return %0, %3 : tensor<2xf32>, tensor<20xi32>
}
