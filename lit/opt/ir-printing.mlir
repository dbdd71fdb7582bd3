// The IR around passes, on stderr.
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-before-all 2>&1 -o %t | filecheck %s --check-prefix=BEFORE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-after-change 2>&1 -o %t | filecheck %s --check-prefix=CHANGE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-after=mgx-dead-code-elimination 2>&1 -o %t | filecheck %s --check-prefix=ONE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-print-ir-before=cse 2>&1 -o %t | filecheck %s --check-prefix=BEFORE-ONE
// RUN: mgx-opt %s --cse --mgx-dead-code-elimination --mlir-timing --mlir-pass-statistics 2>&1 -o %t | filecheck %s --check-prefix=TIMING

// BEFORE: IR Dump Before cse
// BEFORE: arith.negf
// BEFORE: IR Dump Before mgx-dead-code-elimination
// BEFORE-NOT: arith.negf

// CHANGE: IR Dump After cse
// CHANGE-NOT: IR Dump

// ONE-NOT: After cse
// ONE: IR Dump After mgx-dead-code-elimination

// BEFORE-ONE: IR Dump Before cse
// BEFORE-ONE-NOT: IR Dump

// TIMING: Pass execution timing
// TIMING: Total: {{.*}} ms
// TIMING: {{[0-9.]+}} ms ({{.*}}%)  cse
// TIMING: {{[0-9.]+}} ms ({{.*}}%)  mgx-dead-code-elimination
// TIMING: mgx-dead-code-elimination: 0 applied
func.func @f(%a: f32) -> f32 {
  %dead = arith.negf %a : f32
  return %a : f32
}
