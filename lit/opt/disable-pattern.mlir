// A pattern that is switched off does nothing, in whichever pass it stands.
// RUN: mgx-opt %s --mgx-simplify-reshapes | filecheck %s --check-prefix=ON
// RUN: mgx-opt %s --mgx-simplify-reshapes --disable-pattern=find_transpose,find_nested_shape_transforms | filecheck %s --check-prefix=OFF
// RUN: mgx-opt %s --mgx-optimize-module --disable-pattern=find_transpose,find_nested_shape_transforms | filecheck %s --check-prefix=OFF
// RUN: not mgx-opt %s --disable-pattern=find_transposes 2>&1 | filecheck %s --check-prefix=UNKNOWN

// ON-NOT: migraphx.transpose
// OFF-COUNT-2: migraphx.transpose
// UNKNOWN: mgx-opt: error: unknown pattern 'find_transposes'
// UNKNOWN-NEXT: note: did you mean 'find_transpose'?
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
