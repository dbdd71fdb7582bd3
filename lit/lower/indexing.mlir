// RUN: mgx-opt --mgx-lower-to-linalg=arch=generic --split-input-file %s | filecheck %s
// RUN: mgx-opt --mgx-lower-to-linalg='target=gpu arch=gfx942' --split-input-file %s | filecheck %s --check-prefix=GPU

// Rows of a table: whole slices at once, at indices that are wrapped and clamped before.
// CHECK-LABEL: @main(
// CHECK: %[[I:.*]] = linalg.generic
// CHECK: arith.select
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: "flow.dispatch.region"
// CHECK: "iree_linalg_ext.gather"(%arg0, %[[I]], %{{.*}}) {dimension_map = array<i64: 0>} : (tensor<100x32xf32>, tensor<4xi64>, tensor<4x32xf32>) -> tensor<4x32xf32>
func.func @main(%x: tensor<100x32xf32>, %i: tensor<4xi64>) -> tensor<4x32xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<100x32xf32>, tensor<4xi64>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

// Along another axis: element by element.
// CHECK-LABEL: @main(
// CHECK-NOT: iree_linalg_ext
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg1 : tensor<4xi64>)
// CHECK: tensor.extract %arg0
func.func @main(%x: tensor<100x32xf32>, %i: tensor<4xi64>) -> tensor<100x4xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<100x32xf32>, tensor<4xi64>) -> tensor<100x4xf32>
  return %0 : tensor<100x4xf32>
}

// -----

// An unsigned index is never negative: it is clamped only.
// CHECK-LABEL: @main(
// CHECK: arith.index_castui
// CHECK-NOT: arith.select
// CHECK: tensor.extract %arg0
func.func @main(%x: tensor<6xf32>, %i: tensor<4xui8>) -> tensor<4xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<6xf32>, tensor<4xui8>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// An axis of run-time extent can be empty: then nothing is read.
// CHECK-LABEL: @main(
// CHECK: scf.if
// CHECK: tensor.extract %arg0
// CHECK: else
func.func @main(%x: tensor<?xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<?xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// One known index is a slice.
// CHECK-LABEL: @main(
// CHECK-NOT: linalg.generic
// CHECK: tensor.extract_slice %arg0[0, 4] [3, 1] [1, 1]
// CHECK: tensor.collapse_shape
func.func @main(%x: tensor<3x5xf32>) -> tensor<3xf32> {
  %i = "migraphx.literal"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<3x5xf32>, tensor<i64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: "iree_linalg_ext.gather"(%{{.*}}) {dimension_map = array<i64: 0, 1>}
func.func @main(%x: tensor<4x5x16xf16>, %i: tensor<3x2xi32>) -> tensor<3x16xf16> {
  %0 = "migraphx.gathernd"(%x, %i) {batch_dims = 0 : i64} : (tensor<4x5x16xf16>, tensor<3x2xi32>) -> tensor<3x16xf16>
  return %0 : tensor<3x16xf16>
}

// -----

// CHECK-LABEL: @main(
// CHECK-NOT: iree_linalg_ext
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg1 :
// CHECK-COUNT-1: tensor.extract %arg1
// CHECK: tensor.extract %arg0
func.func @main(%x: tensor<4x5xf16>, %i: tensor<3x2xi32>) -> tensor<3xf16> {
  %0 = "migraphx.gathernd"(%x, %i) {batch_dims = 0 : i64} : (tensor<4x5xf16>, tensor<3x2xi32>) -> tensor<3xf16>
  return %0 : tensor<3xf16>
}

// -----

// CHECK-LABEL: @main(
// CHECK: linalg.generic
// CHECK: %[[H:.*]] = arith.cmpi eq
// CHECK: arith.select %[[H]]
func.func @main(%i: tensor<3xi64>, %v: tensor<2xf32>) -> tensor<3x4xf32> {
  %0 = "migraphx.onehot"(%i, %v) {axis = -1 : i64, depth = 4 : i64} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// One row. On a GPU each element reads the index: of a gather of slices IREE would make a slice,
// whose index the host reads.
// CHECK-LABEL: @main(%arg0: tensor<100x32xf16>
// CHECK: "iree_linalg_ext.gather"
// GPU-LABEL: @main(%arg0: tensor<100x32xf16>
// GPU-NOT: iree_linalg_ext.gather
// GPU: linalg.generic
// GPU: tensor.extract %arg0
// GPU: return
func.func @main(%x: tensor<100x32xf16>, %i: tensor<1xi64>) -> tensor<1x32xf16> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<100x32xf16>, tensor<1xi64>) -> tensor<1x32xf16>
  return %0 : tensor<1x32xf16>
}

// -----

// The same of a gathernd.
// CHECK-LABEL: @main(%arg0: tensor<100x3x32xf16>
// CHECK: "iree_linalg_ext.gather"
// GPU-LABEL: @main(%arg0: tensor<100x3x32xf16>
// GPU-NOT: iree_linalg_ext.gather
// GPU: return
func.func @main(%x: tensor<100x3x32xf16>, %i: tensor<1x2xi64>) -> tensor<1x32xf16> {
  %0 = "migraphx.gathernd"(%x, %i) {batch_dims = 0 : i64} : (tensor<100x3x32xf16>, tensor<1x2xi64>) -> tensor<1x32xf16>
  return %0 : tensor<1x32xf16>
}
