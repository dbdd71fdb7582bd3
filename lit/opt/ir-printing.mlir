// The IR around passes, on stderr.
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-before-all 2>&1 -o %t | filecheck %s --check-prefix=BEFORE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-after-change 2>&1 -o %t | filecheck %s --check-prefix=CHANGE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-after=mgx-dead-code-elimination 2>&1 -o %t | filecheck %s --check-prefix=ONE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-before=cse 2>&1 -o %t | filecheck %s --check-prefix=BEFORE-ONE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-timing --mlir-pass-statistics 2>&1 -o %t | filecheck %s --check-prefix=TIMING

// BEFORE: IR Dump Before CSEPass: cse //----- //
// BEFORE: arith.negf
// BEFORE: IR Dump Before DeadCodeElimination: mgx-dead-code-elimination //----- //
// BEFORE-NOT: arith.negf

// CHANGE: IR Dump After CSEPass: cse
// CHANGE-NOT: IR Dump

// ONE-NOT: After CSEPass
// ONE: IR Dump After DeadCodeElimination: mgx-dead-code-elimination

// BEFORE-ONE: IR Dump Before CSEPass: cse //----- //
// BEFORE-ONE-NOT: IR Dump

// TIMING: ... Pass statistics report ...
// TIMING: DeadCodeElimination
// TIMING: ... Execution time report ...
// TIMING: Total Execution Time: {{[0-9.]+}} seconds
// TIMING: ----Wall Time----  ----Name----
// TIMING-NEXT: {{[0-9.]+}} ({{.*}}%)  Parser
// TIMING-NEXT: {{[0-9.]+}} ({{.*}}%)  CSEPass
// TIMING-NEXT: {{[0-9.]+}} ({{.*}}%)  DeadCodeElimination
// TIMING-NEXT: {{[0-9.]+}} ({{.*}}%)  Output
// TIMING-NEXT: {{[0-9.]+}} ({{.*}}%)  Rest
// TIMING-NEXT: {{[0-9.]+}} (100.0%)  Total
func.func @f(%a: f32) -> f32 {
  %dead = arith.negf %a : f32
  return %a : f32
}
