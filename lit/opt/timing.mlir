// Times as a tree and as a list; the pipeline with every option.
// RUN: mgx-opt %s --pass-pipeline='builtin.module(mgx-optimize-module{rounds=1},func.func(cse))' --mlir-timing -o %t 2>&1 | filecheck %s --check-prefix=TREE
// RUN: mgx-opt %s --mgx-optimize-module --mlir-timing --mlir-timing-display=list -o %t 2>&1 | filecheck %s --check-prefix=LIST
// RUN: mgx-opt %s --pass-pipeline='builtin.module(mgx-optimize-module{rounds=1},func.func(cse,canonicalize))' --dump-pass-pipeline -o %t 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: mgx-opt %s --dump-pass-pipeline -o %t 2>&1 | filecheck %s --check-prefix=EMPTY

// TREE: ... Execution time report ...
// TREE: Total Execution Time: {{[0-9]+\.[0-9]+}} seconds
// TREE: {{^}}  ----Wall Time----  ----Name----
// TREE-NEXT: {{^ *[0-9.]+ \( *[0-9.]+%\)}}  Parser
// TREE-NEXT: {{^ *[0-9.]+ \( *[0-9.]+%\)}}  OptimizeModule
// TREE-NEXT: {{^ *[0-9.]+ \( *[0-9.]+%\)}}    SimplifyReshapes
// TREE: {{^ *[0-9.]+ \( *[0-9.]+%\)}}  'func.func' Pipeline
// TREE-NEXT: {{^ *[0-9.]+ \( *[0-9.]+%\)}}    CSEPass
// TREE-NEXT: {{^ *[0-9.]+ \( *[0-9.]+%\)}}  Output
// TREE-NEXT: {{^ *[0-9.]+ \( *[0-9.]+%\)}}  Rest
// TREE-NEXT: {{^ *[0-9.]+ \(100.0%\)}}  Total

// LIST: {{%\)}}  SimplifyReshapes
// LIST: {{%\)}}  Total

// DUMP: {{^}}Pass Manager with 2 passes:
// DUMP-NEXT: {{^}}builtin.module(
// DUMP-NEXT: {{^}}  mgx-optimize-module{rounds=1 inner-rounds=
// DUMP-NEXT: {{^}}  func.func(
// DUMP-NEXT: {{^}}    cse,
// DUMP-NEXT: {{^}}    canonicalize{{[{].*max-iterations=10.*[}]$}}
// DUMP-NEXT: {{^}}  )
// DUMP-NEXT: {{^}})

// EMPTY: Pass Manager with 0 passes:
// EMPTY-NEXT: builtin.module()
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.transpose"(%a) {permutation = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
