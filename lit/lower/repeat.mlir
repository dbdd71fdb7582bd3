// RUN: mgx-opt --mgx-lower-to-linalg=arch=znver4 --split-input-file %s | filecheck %s

// Each element twice, side by side: vectors are read once, and shuffled to twice their length.
// CHECK-LABEL: @main(
// CHECK: flow.executable
// CHECK: vector.transfer_read {{.*}} vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 0, 1, 1,
// CHECK: vector.transfer_write {{.*}} vector<32xf32>
// CHECK-NOT: linalg.generic
func.func @main(%x: tensor<3x40x1xf32>) -> tensor<3x2x40x2xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 3, 1, 40, 1>} : (tensor<3x40x1xf32>) -> tensor<3x1x40x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 3, 2, 40, 2>} : (tensor<3x1x40x1xf32>) -> tensor<3x2x40x2xf32>
  return %1 : tensor<3x2x40x2xf32>
}

// -----

// Near miss: five times are more than a register each.
// CHECK-LABEL: @main(
// CHECK: linalg.generic
func.func @main(%x: tensor<3x40x1xf32>) -> tensor<3x40x5xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 3, 40, 5>} : (tensor<3x40x1xf32>) -> tensor<3x40x5xf32>
  return %0 : tensor<3x40x5xf32>
}
