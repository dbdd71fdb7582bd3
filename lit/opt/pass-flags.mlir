// Passes run in the order of their flags; ours and upstream ones mix.
// RUN: mgx-opt %s --mgx-dead-code-elimination --cse --mlir-print-ir-after-all -o %t.out 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: filecheck %s < %t.out
// RUN: mgx-opt %s --pass-pipeline='builtin.module(cse,mgx-dead-code-elimination)' --mlir-print-ir-after-all 2>&1 | filecheck %s --check-prefix=REVERSED
// RUN: mgx-opt %s --mgx-dead-code-elimination --cse --mgx-disable-passes=cse,dead_code_elimination | filecheck %s --check-prefix=DISABLED
// RUN: mgx-opt --pass-pipeline='any(cse)' %s 2>&1 | filecheck %s --check-prefix=ANY

// DUMP: IR Dump After DeadCodeElimination: mgx-dead-code-elimination
// DUMP-NOT: negf
// DUMP: IR Dump After CSEPass: cse
// DUMP-NOT: IR Dump

// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[SUM:.*]] = arith.addf
// CHECK-NEXT: arith.mulf %[[SUM]], %[[SUM]]
// CHECK-NEXT: return

// REVERSED: IR Dump After CSEPass: cse
// REVERSED: IR Dump After DeadCodeElimination: mgx-dead-code-elimination

// DISABLED: arith.addf
// DISABLED-NEXT: arith.addf
// DISABLED-NEXT: arith.mulf
// DISABLED-NEXT: arith.negf

// ANY: func.func @f
func.func @f(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  %1 = arith.addf %a, %a : f32
  %2 = arith.mulf %0, %1 : f32
  %dead = arith.negf %2 : f32
  return %2 : f32
}
