// mgx-reduce: what shows the bug stays, the rest becomes inputs; mlir-reduce's and llvm-reduce's tests.
// RUN: mgx-reduce %s --test 'grep -q "migraphx\.erf" {}' -o %t.mlir 2>&1 | filecheck %s --check-prefix=SAYS
// RUN: filecheck %s < %t.mlir
// RUN: mgx-reduce %s --test '! grep -q "migraphx\.erf" {}' --interesting=nonzero -o %t.nonzero.mlir
// RUN: filecheck %s < %t.nonzero.mlir
// RUN: not mgx-reduce %s --test 'grep -q "migraphx\.erf" {}' --interesting=nonzero -o %t.no.mlir 2>&1 | filecheck %s --check-prefix=NOT
// RUN: not mgx-reduce %s 2>&1 | filecheck %s --check-prefix=USAGE
// RUN: not mgx-reduce %s --tset=x 2>&1 | filecheck %s --check-prefix=FLAG

// SAYS: mgx-reduce: 5 ops, 1 literals, 2 arguments, 2 results, {{.*}}; the command ends with status 0
// SAYS: 1 ops, 0 literals, 1 arguments, 0 results, {{.*}}: dims
// CHECK: func.func @main(%arg0: tensor<f32>)
// CHECK-NEXT: "migraphx.erf"(%arg0)
// CHECK-NEXT: return
// NOT: mgx-reduce: error: the input is not interesting: the command ends with status 0, expected nonzero
// USAGE: mgx-reduce: error: expected a file and --test
// FLAG: mgx-reduce: error: unknown option '--tset'
// FLAG-NEXT: note: did you mean 'test'?
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<4x6xf32>} : () -> tensor<4x6xf32>
  %0 = "migraphx.mul"(%x, %w) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.erf"(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = "migraphx.add"(%1, %y) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = "migraphx.exp"(%2) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = "migraphx.neg"(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %3, %4 : tensor<4x6xf32>, tensor<4x6xf32>
}
