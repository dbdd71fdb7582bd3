// A concatenation is one loop, whose workgroups are full on NVIDIA GPUs.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=sm_90' --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --split-input-file | filecheck %s --check-prefix=AMD
// RUN: mgx-opt %s --mgx-name-dynamic-dims --mgx-fuse-concat='dynamic=true' --mgx-forget-dynamic-dims --mgx-lower-to-linalg='target=gpu arch=gfx942' --split-input-file | filecheck %s --check-prefix=FUSED

// 16 threads of 8 elements along a row, 16 rows.
// CHECK-LABEL: @main(
// CHECK-NOT: tensor.insert_slice
// CHECK: linalg.generic
// CHECK-SAME: thread = [1, 1, 8], workgroup = [1, 16, 128]
// CHECK-SAME: workgroup_size = [256, 1, 1]
// CHECK: linalg.index 1
// CHECK: arith.select
// AMD-LABEL: @main(
// AMD-NOT: tensor.insert_slice
// AMD: linalg.generic
// AMD-NOT: compilation_info
// AMD: return
func.func @rows(%x: tensor<8x1023x128xf16>, %y: tensor<8x1x128xf16>) -> tensor<8x1024x128xf16> {
  %0 = "migraphx.concat"(%x, %y) {axis = 1 : i64} : (tensor<8x1023x128xf16>, tensor<8x1x128xf16>) -> tensor<8x1024x128xf16>
  return %0 : tensor<8x1024x128xf16>
}

// -----

// Parts along the last axis are read one element at a time, by lanes beside each other.
// CHECK-LABEL: @main(
// CHECK-NOT: tensor.insert_slice
// CHECK: linalg.generic
// CHECK-NOT: compilation_info
// CHECK: arith.select
// AMD-LABEL: @main(
// AMD: arith.select
func.func @columns(%x: tensor<1024x100xf16>, %y: tensor<1024x28xf16>) -> tensor<1024x128xf16> {
  %0 = "migraphx.concat"(%x, %y) {axis = 1 : i64} : (tensor<1024x100xf16>, tensor<1024x28xf16>) -> tensor<1024x128xf16>
  return %0 : tensor<1024x128xf16>
}

// -----

// Few elements keep the tile of IREE.
// CHECK-LABEL: @main(
// CHECK: linalg.generic
// CHECK-NOT: compilation_info
// CHECK: return
// AMD-LABEL: @main(
// AMD: linalg.generic
func.func @few(%x: tensor<3x128xf16>, %y: tensor<5x128xf16>) -> tensor<8x128xf16> {
  %0 = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<3x128xf16>, tensor<5x128xf16>) -> tensor<8x128xf16>
  return %0 : tensor<8x128xf16>
}

// -----

// More parts are copied.
// CHECK-LABEL: @main(
// CHECK-COUNT-5: tensor.insert_slice
// AMD-LABEL: @main(
// AMD-COUNT-5: tensor.insert_slice
func.func @many(%x: tensor<3x16xf16>) -> tensor<15x16xf16> {
  %0 = "migraphx.concat"(%x, %x, %x, %x, %x) {axis = 0 : i64} : (tensor<3x16xf16>, tensor<3x16xf16>, tensor<3x16xf16>, tensor<3x16xf16>, tensor<3x16xf16>) -> tensor<15x16xf16>
  return %0 : tensor<15x16xf16>
}

// -----

// A dynamic number of rows, whose fixed dim is concatenated, is one loop too.
// FUSED-LABEL: @main(%arg0: tensor<?x?x8xf32>)
// FUSED-NOT: tensor.insert_slice
// FUSED: "flow.dispatch.region"
// FUSED: linalg.generic
// FUSED: arith.negf
// FUSED: arith.select
// FUSED: "flow.return"
// FUSED-NOT: linalg.generic
func.func @dynamic_rows(%x: tensor<?x?x8xf32>) -> tensor<?x?x16xf32> {
  %n = "migraphx.neg"(%x) : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %c = "migraphx.concat"(%n, %x) {axis = 2 : i64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x16xf32>
  return %c : tensor<?x?x16xf32>
}
