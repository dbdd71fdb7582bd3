// Reductions and pointwise ops as vector loops over rows.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s

// The largest, then the exponentials and their sum, which stay in the result's tile, then the quotients.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: %[[O:.*]] = tensor.empty() : tensor<4x320xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[O]])
// CHECK: vector.transfer_read {{.*}} vector<64xf32>
// CHECK: arith.cmpf ogt
// CHECK: vector.extract_strided_slice {{.*}} vector<2xf32> to vector<1xf32>
// CHECK: arith.cmpf ogt
// CHECK: scf.for {{.*}} tensor<4x320xf32>) {
// CHECK: math.fma
// CHECK: vector.transfer_write
// CHECK: vector.reduction <add>
// CHECK: scf.for
// CHECK: vector.transfer_read %{{.*}} : tensor<4x320xf32>
// CHECK: arith.mulf
// CHECK-NOT: linalg
func.func @softmax(%x: tensor<4x320xf32>) -> tensor<4x320xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x320xf32>):
    %1 = "migraphx.softmax"(%a) {axis = 1 : i64} : (tensor<4x320xf32>) -> tensor<4x320xf32>
    "migraphx.yield"(%1) : (tensor<4x320xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<4x320xf32>) -> tensor<4x320xf32>
  return %0 : tensor<4x320xf32>
}

// -----

// A row of one vector: the exponentials stay in registers, and each row is written once.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: %[[O:.*]] = tensor.empty() : tensor<4x32xf32>
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %[[O]])
// CHECK: vector.transfer_read {{.*}} vector<32xf32>
// CHECK: arith.cmpf ogt
// CHECK: vector.extract_strided_slice {{.*}} vector<2xf32> to vector<1xf32>
// CHECK: arith.cmpf ogt
// CHECK: math.fma
// CHECK-NOT: vector.transfer_write
// CHECK: vector.reduction <add>
// CHECK: arith.mulf
// CHECK: vector.transfer_write {{.*}}, %[[T]]
// CHECK-NOT: linalg
func.func @short(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x32xf32>):
    %1 = "migraphx.softmax"(%a) {axis = 1 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    "migraphx.yield"(%1) : (tensor<4x32xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

// Over the first axis a vector is along the last one: no reduction of its lanes.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: scf.for {{.*}} -> (vector<64xf32>
// CHECK: arith.addf {{.*}} : vector<64xf32>
// CHECK-NOT: vector.reduction
// CHECK: vector.transfer_write {{.*}} tensor<64xf32>
func.func @first_axis(%x: tensor<100x64xf32>) -> tensor<1x64xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<100x64xf32>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 0>} : (tensor<100x64xf32>) -> tensor<1x64xf32>
    "migraphx.yield"(%1) : (tensor<1x64xf32>) -> ()
  }) {axes = array<i64: 0>} : (tensor<100x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

// Dynamic dims: only the last vector of a row is masked.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: scf.if
// CHECK: vector.transfer_read {{.*}} : tensor<?x?xf32>, vector<16xf32>
// CHECK: vector.create_mask
// CHECK: arith.select
func.func @open(%x: tensor<?x?xf32>) -> tensor<?x1xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<?x?xf32>):
    %1 = "migraphx.reduce_mean"(%a) {axes = array<i64: 1>} : (tensor<?x?xf32>) -> tensor<?x1xf32>
    "migraphx.yield"(%1) : (tensor<?x1xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<?x?xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// 64-bit elements are left to the compiler.
// CHECK-LABEL: @main(
// CHECK-NOT: flow.executable
// CHECK: linalg.generic
func.func @wide(%x: tensor<4x8xf64>) -> tensor<4x1xf64> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x8xf64>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<4x8xf64>) -> tensor<4x1xf64>
    "migraphx.yield"(%1) : (tensor<4x1xf64>) -> ()
  }) {axes = array<i64: 1>} : (tensor<4x8xf64>) -> tensor<4x1xf64>
  return %0 : tensor<4x1xf64>
}

// -----

// Totals of groups of channels: vectors along all channels, whose totals are joined on the stack.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: %[[P:.*]] = tensor.empty() : tensor<48xf32>
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} vector<32xf32>
// CHECK: vector.transfer_write {{.*}} tensor<48xf32>
// CHECK: tensor.expand_shape {{.*}} tensor<48xf32> into tensor<8x6xf32>
// CHECK: vector.reduction <add>
// CHECK: %[[T:.*]] = tensor.collapse_shape {{.*}} tensor<8x6xf32> into tensor<48xf32>
// CHECK: vector.transfer_read %[[T]]
// CHECK: arith.subf
// CHECK-NOT: linalg
func.func @groups(%x: tensor<2x40x8x6xf32>) -> tensor<2x40x8x6xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<2x40x8x6xf32>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1, 3>} : (tensor<2x40x8x6xf32>) -> tensor<2x1x8x1xf32>
    %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 2, 40, 8, 6>} : (tensor<2x1x8x1xf32>) -> tensor<2x40x8x6xf32>
    %3 = "migraphx.sub"(%a, %2) : (tensor<2x40x8x6xf32>, tensor<2x40x8x6xf32>) -> tensor<2x40x8x6xf32>
    "migraphx.yield"(%3) : (tensor<2x40x8x6xf32>) -> ()
  }) {axes = array<i64: 1, 3>} : (tensor<2x40x8x6xf32>) -> tensor<2x40x8x6xf32>
  return %0 : tensor<2x40x8x6xf32>
}
