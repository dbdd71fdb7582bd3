// How often each pattern of each pass was applied, in passes of passes too.
// RUN: mgx-opt %s --mgx-optimize-module --cse --mlir-pass-statistics -o %t 2>&1 | filecheck %s
// RUN: mgx-opt %s --mgx-optimize-module --mgx-simplify-reshapes --mlir-pass-statistics --mlir-pass-statistics-display=list -o %t 2>&1 | filecheck %s --check-prefix=LIST

// CHECK: {{^}}===-------------------------------------------------------------------------===
// CHECK-NEXT: {{^}}                         ... Pass statistics report ...
// CHECK-NEXT: {{^}}===-------------------------------------------------------------------------===
// CHECK-NEXT: {{^}}OptimizeModule
// CHECK-NEXT: {{^}}  SimplifyReshapes
// CHECK: {{^}}    (S) 0 find_nested_slice {{ *}}- slice(slice(x)) -> slice(x)
// CHECK: {{^}}    (S) 1 find_transpose {{ *}}- transpose(transpose(x, p), q) -> transpose(x, p[q])
// CHECK: {{^}}  SimplifyAlgebra
// CHECK: {{^}}CSEPass

// LIST-NOT: OptimizeModule
// LIST: {{^}}SimplifyAlgebra
// LIST: {{^}}SimplifyReshapes
// LIST: {{^}}  (S) 1 find_transpose
// LIST-NOT: SimplifyReshapes
func.func @main(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.div"(%1, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
