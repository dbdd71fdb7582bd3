// Passes on functions print the function, or the whole module; or each pass goes to its own file.
// RUN: mgx-opt %s --pass-pipeline='builtin.module(func.func(cse),symbol-dce)' --mlir-print-ir-after-all -o %t 2>&1 | filecheck %s --check-prefix=LOCAL
// RUN: mgx-opt %s --pass-pipeline='builtin.module(func.func(cse),symbol-dce)' --mlir-print-ir-after=cse --mlir-print-ir-module-scope -o %t 2>&1 | filecheck %s --check-prefix=SCOPE
// RUN: mgx-opt %s --pass-pipeline='builtin.module(mgx-dead-code-elimination,func.func(cse),symbol-dce)' --mlir-print-ir-after-all --mlir-print-ir-tree-dir=%t.tree -o %t 2>&1 | filecheck %s --check-prefix=NOTHING --allow-empty
// RUN: filecheck %s --check-prefix=FILE < %t.tree/builtin_module_no-symbol-name/func_func_g/0_0_cse.mlir
// RUN: filecheck %s --check-prefix=LAST < %t.tree/builtin_module_no-symbol-name/1_symbol-dce.mlir
// RUN: mgx-opt %s --pass-pipeline='builtin.module(func.func(cse))' --mlir-print-ir-after-all --mlir-print-ir-after-change -o %t 2>&1 | filecheck %s --check-prefix=CHANGE

// LOCAL: // -----// IR Dump After CSEPass: cse //----- //
// LOCAL-NEXT: {{^}}func.func @f
// LOCAL: // -----// IR Dump After CSEPass: cse //----- //
// LOCAL-NEXT: {{^}}func.func @g
// LOCAL: // -----// IR Dump After SymbolDCEPass: symbol-dce //----- //
// LOCAL-NEXT: {{^}}module {

// SCOPE: // -----// IR Dump After CSEPass: cse ('func.func' operation: @f) //----- //
// SCOPE-NEXT: {{^}}module {
// SCOPE: // -----// IR Dump After CSEPass: cse ('func.func' operation: @g) //----- //
// SCOPE-NEXT: {{^}}module {
// SCOPE-NOT: IR Dump

// NOTHING-NOT: IR Dump
// FILE: // -----// IR Dump After CSEPass: cse //----- //
// FILE-NEXT: {{^}}func.func @g
// FILE-NOT: @f
// LAST: // -----// IR Dump After SymbolDCEPass: symbol-dce //----- //

// CHANGE: IR Dump After CSEPass
// CHANGE-NEXT: @f
// CHANGE-NOT: IR Dump
func.func @f(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  %1 = arith.addf %a, %a : f32
  %2 = arith.mulf %0, %1 : f32
  return %2 : f32
}
func.func @g(%a: f32) -> f32 {
  return %a : f32
}
