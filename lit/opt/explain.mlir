// Why a pattern was not applied, op by op, and where it was.
// RUN: mgx-opt %s --mgx-simplify-reshapes --mgx-simplify-reshapes --explain=find_transpose -o %t 2>&1 | filecheck %s
// RUN: mgx-opt %s --mgx-eliminate-identity --explain=find_transpose,find_identity -o %t 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: mgx-opt %s --mgx-simplify-reshapes --explain=find_transpose --disable-pattern=find_transpose -o %t 2>&1 | filecheck %s --check-prefix=OFF
// RUN: not mgx-opt %s --explain=find_transposed 2>&1 | filecheck %s --check-prefix=UNKNOWN

// CHECK: explain.mlir:20:8: remark: [find_transpose] not applied: input is not a transpose
// CHECK-NEXT: migraphx.transpose {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> (tensor<3x2xf32>)
// CHECK: explain.mlir:21:8: remark: [find_transpose] applied
// CHECK-NEXT: migraphx.transpose {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> (tensor<2x3xf32>)
// CHECK: find_transpose: applied 1, refused 1: transpose(transpose(x, p), q) -> transpose(x, p[q])

// OTHER: find_identity: applied 0, refused 0
// OTHER-NEXT: note: no op was tried: it looks at migraphx.identity
// OTHER-NEXT: find_transpose: applied 0, refused 0
// OTHER-NEXT: note: no pass that ran holds it, mgx-layout-convolution and mgx-simplify-reshapes do
// OFF: find_transpose: applied 0, refused 0
// UNKNOWN: mgx-opt: error: unknown pattern 'find_transposed'
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
