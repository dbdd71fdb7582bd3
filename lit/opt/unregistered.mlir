// RUN: mgx-opt %s --allow-unregistered-dialect | filecheck %s
// RUN: not mgx-opt %s 2>&1 | filecheck %s --check-prefix=REFUSED

// CHECK: "foreign.op"() : () -> ()
// REFUSED: unregistered.mlir:6:13: error: operation being parsed with an unregistered dialect
"foreign.op"() : () -> ()
