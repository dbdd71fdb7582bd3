// RUN: mgx-opt --mgx-lower-to-linalg=arch=znver4 --split-input-file %s | filecheck %s

// Rows are copied, as they are where all extents are the result's; an extent that is 1 has step 0.
// CHECK-LABEL: @main(
// CHECK: flow.executable
// CHECK: arith.select
// CHECK: scf.if
// CHECK: scf.for
// CHECK: vector.transfer_read
// CHECK: vector.transfer_write
// CHECK-NOT: linalg.generic
func.func @main(%x: tensor<?x?xf32>, %d: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = "migraphx.broadcast_with_dims"(%x, %d) : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A scalar type that vectors do not hold is read element by element.
// CHECK-LABEL: @main(
// CHECK: linalg.generic
// CHECK: arith.select
func.func @main(%x: tensor<?x?xf8E4M3FN>, %d: tensor<2xi64>) -> tensor<?x?xf8E4M3FN> {
  %0 = "migraphx.broadcast_with_dims"(%x, %d) : (tensor<?x?xf8E4M3FN>, tensor<2xi64>) -> tensor<?x?xf8E4M3FN>
  return %0 : tensor<?x?xf8E4M3FN>
}
