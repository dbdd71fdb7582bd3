// argmax, running sums and topk as vector loops.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s

// Each lane holds its best element and the place of it; the lanes are compared at the end.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: scf.for {{.*}} -> (vector<64xf32>, vector<64xi32>, vector<16xf32>, vector<16xi32>, tensor<4xi64>)
// CHECK: arith.cmpf ogt
// CHECK: vector.extract_strided_slice
// CHECK-NOT: linalg
func.func @argmax(%x: tensor<4x?xf32>) -> tensor<4x1xi64> {
  %0 = "migraphx.argmax"(%x) {axis = 1 : i64} : (tensor<4x?xf32>) -> tensor<4x1xi64>
  return %0 : tensor<4x1xi64>
}

// -----

// Over the first axis one addition for each row; the total of the rows before it is carried.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: scf.for {{.*}} -> (vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT: vector.shuffle
// CHECK: return
func.func @running_sum(%x: tensor<9x64xf32>) -> tensor<9x64xf32> {
  %0 = "migraphx.prefix_scan_sum"(%x) {axis = 0 : i64} : (tensor<9x64xf32>) -> tensor<9x64xf32>
  return %0 : tensor<9x64xf32>
}

// -----

// What is no better than the last of the list is passed over, a vector at a time.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: %[[BETTER:.*]] = arith.cmpi sgt, {{.*}} : vector<16xi32>
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[BETTER]]
// CHECK: scf.if %[[ANY]]
func.func @topk(%x: tensor<8x1000xf32>) -> (tensor<8x5xf32>, tensor<8x5xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 5 : i64, axis = 1 : i64, largest = true} : (tensor<8x1000xf32>) -> (tensor<8x5xf32>, tensor<8x5xi64>)
  return %0#0, %0#1 : tensor<8x5xf32>, tensor<8x5xi64>
}

// -----

// For a long list all places are sorted: runs of 1, 2, 4, .. are merged, in two rows of room.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: tensor.empty() : tensor<1x2x1000xi32>
// CHECK: %[[WIDTH:.*]] = arith.shli
// CHECK: arith.cmpi sge, {{.*}} : i32
// CHECK-NOT: iree_linalg_ext.topk
func.func @long_list(%x: tensor<8x1000xf32>) -> (tensor<8x600xf32>, tensor<8x600xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 600 : i64, axis = 1 : i64, largest = true} : (tensor<8x1000xf32>) -> (tensor<8x600xf32>, tensor<8x600xi64>)
  return %0#0, %0#1 : tensor<8x600xf32>, tensor<8x600xi64>
}
