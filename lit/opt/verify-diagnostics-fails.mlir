// A difference is named and is a failure, an error that nobody expects as well.
// RUN: not mgx-opt %s --verify-diagnostics --split-input-file 2>&1 | filecheck %s
// RUN: not mgx-opt %s --verify-diagnostics=only-expected --split-input-file 2>&1 | filecheck %s --check-prefix=ONLY
// RUN: not mgx-opt %s --split-input-file 2>&1 | filecheck %s --check-prefix=PLAIN

// CHECK: fails.mlir:22:19: error: unexpected error: use of value
// CHECK-NEXT: fails.mlir:21:14: error: unexpected note: prior use here
// CHECK-NEXT: fails.mlir:20:1: error: expected error "something else" was not produced
// CHECK-NEXT: fails.mlir:28:1: error: expected remark "a remark" was not produced
// CHECK-NOT: Traceback

// ONLY-NOT: unexpected
// ONLY: expected error "something else" was not produced

// PLAIN: fails.mlir:22:19: error: use of value '%a' expects different type
// PLAIN-NEXT: %0 = arith.addf %a, %a : f64
// PLAIN-NEXT: {{^ +}}^
// PLAIN: func.func @ok

// expected-error@+2 {{something else}}
func.func @f(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f64
  return %0 : f32
}

// -----

// expected-remark@+1 {{a remark}}
func.func @ok() {
  return
}
