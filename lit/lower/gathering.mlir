// gather of rows as loops of our own.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s

// The index wraps once and is clamped; four registers of a row are copied at once.
// CHECK-LABEL: @main(
// CHECK: "flow.dispatch"
// CHECK: return
// CHECK: "flow.executable"
// CHECK: tensor.extract
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: vector.transfer_read {{.*}} : tensor<1x100x128xf32>, vector<64xf32>
// CHECK: vector.transfer_write
func.func @rows(%x: tensor<100x128xf32>, %i: tensor<4xi64>) -> tensor<4x128xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<100x128xf32>, tensor<4xi64>) -> tensor<4x128xf32>
  return %0 : tensor<4x128xf32>
}

// -----

// Short rows are left to the compiler.
// CHECK-LABEL: @main(
// CHECK-NOT: "flow.executable"
// CHECK: linalg.generic
func.func @elements(%x: tensor<3x100xf32>, %i: tensor<4xi64>) -> tensor<3x4xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<3x100xf32>, tensor<4xi64>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
