// RUN: mgx-opt --mgx-lower-to-linalg=arch=x86-64-v3 --split-input-file %s | filecheck %s

// A mirrored border, channels-last: rows and columns are found once, channels are copied by vectors.
// CHECK-LABEL: func.func @main(
// CHECK: "flow.dispatch"{{.*}}@kernel_dispatch_0_pad
// CHECK: vector.transfer_read {{.*}} vector<8xf32>
// CHECK: vector.transfer_write {{.*}} vector<8xf32>
func.func @main(%x: tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32> {
  %0 = "migraphx.pad"(%x) {mode = "reflect", pads = array<i64: 0, 1, 2, 0, 0, 1, 2, 0>, value = 0.0 : f64} : (tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32>
  return %0 : tensor<?x?x?x16xf32>
}

// -----

// Near misses: axes that are apart, and a border of one number.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: vector.transfer_read
func.func @main(%x: tensor<4x3x5xf32>) -> tensor<6x3x7xf32> {
  %0 = "migraphx.pad"(%x) {mode = "edge", pads = array<i64: 1, 0, 1, 1, 0, 1>, value = 0.0 : f64} : (tensor<4x3x5xf32>) -> tensor<6x3x7xf32>
  return %0 : tensor<6x3x7xf32>
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK-NOT: vector.transfer_read
func.func @main(%x: tensor<4x3x5xf32>) -> tensor<4x3x7xf32> {
  %0 = "migraphx.pad"(%x) {mode = "constant", pads = array<i64: 0, 0, 1, 0, 0, 1>, value = 0.0 : f64} : (tensor<4x3x5xf32>) -> tensor<4x3x7xf32>
  return %0 : tensor<4x3x7xf32>
}
