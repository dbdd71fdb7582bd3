// RUN: mgx-opt --mgx-lower-to-linalg=arch=x86-64 --split-input-file %s | filecheck %s

// A static slice is one extract_slice; bounds are normalised at compile time.
// CHECK-LABEL: @main(
// CHECK: tensor.extract_slice %arg0[0, 2] [4, 2] [1, 1] : tensor<4x5xf32> to tensor<4x2xf32>
func.func @main(%x: tensor<4x5xf32>) -> tensor<4x2xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: -3>, ends = array<i64: -1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x5xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// An empty slice at the very end is a tensor of nothing: its offset would not be valid.
// CHECK-LABEL: @main(
// CHECK-NOT: extract_slice
// CHECK: tensor.empty() : tensor<0x5xf32>
func.func @main(%x: tensor<4x5xf32>) -> tensor<0x5xf32> {
  %0 = "migraphx.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 4>, ends = array<i64: 9>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<4x5xf32>) -> tensor<0x5xf32>
  return %0 : tensor<0x5xf32>
}

// -----

// Run-time bounds are clamped to both ends before the extent is added.
// CHECK-LABEL: @main(
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: tensor.extract_slice %arg0[0, %{{.*}}] [4, %{{.*}}] [1, 1] : tensor<4x5xf32> to tensor<4x?xf32>
func.func @main(%x: tensor<4x5xf32>, %s: tensor<1xi64>) -> tensor<4x?xf32> {
  %0 = "migraphx.slice"(%x, %s) {axes = array<i64: 1>, starts = array<i64>, ends = array<i64: 4>, operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<4x5xf32>, tensor<1xi64>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: tensor.extract_slice %arg0[0, 0] [4, 3] [1, 2] : tensor<4x5xf32> to tensor<4x3xf32>
func.func @main(%x: tensor<4x5xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.step"(%x) {axes = array<i64: 1>, steps = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// A concat is a chain of insert_slice, not tensor.concat; empty parts are left out.
// CHECK-LABEL: @main(
// CHECK-NOT: tensor.concat
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x5xi8>
// CHECK: %[[A:.*]] = tensor.insert_slice %arg0 into %[[E]][0, 0] [2, 3] [1, 1]
// CHECK: tensor.insert_slice %arg2 into %[[A]][0, 3] [2, 2] [1, 1]
// CHECK-NOT: insert_slice
func.func @main(%x: tensor<2x3xui8>, %e: tensor<2x0xui8>, %y: tensor<2x2xui8>) -> tensor<2x5xui8> {
  %0 = "migraphx.concat"(%x, %e, %y) {axis = 1 : i64} : (tensor<2x3xui8>, tensor<2x0xui8>, tensor<2x2xui8>) -> tensor<2x5xui8>
  return %0 : tensor<2x5xui8>
}

// -----

// CHECK-LABEL: @main(
// CHECK: %[[V:.*]] = arith.constant -1.500000e+00 : f32
// CHECK: tensor.pad %arg0 low[1, 0] high[2, 3]
// CHECK: tensor.yield %[[V]] : f32
func.func @main(%x: tensor<2x3xf32>) -> tensor<5x6xf32> {
  %0 = "migraphx.pad"(%x) {mode = "constant", pads = array<i64: 1, 0, 2, 3>, value = -1.5 : f64} : (tensor<2x3xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

// -----

// A reflection reads from computed, clamped positions; a dim without padding from its own.
// CHECK-LABEL: @main(
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: arith.remui
// CHECK: %[[J:.*]] = arith.maxsi
// CHECK: tensor.extract %arg0[%[[I]], %[[J]]] : tensor<2x3xf32>
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %0 = "migraphx.pad"(%x) {mode = "reflect", pads = array<i64: 0, 1, 0, 2>, value = 0.0 : f64} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: %[[J:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// CHECK: tensor.extract %arg0[%{{.*}}, %[[J]]]
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.reverse"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Flipping an axis of one element is nothing.
// CHECK-LABEL: @main(
// CHECK-NOT: linalg
// CHECK: return %arg0
func.func @main(%x: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %0 = "migraphx.reverse"(%x) {axes = array<i64: 1>} : (tensor<2x1xf32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// -----

// Where an extent may be 1 or the result's, the index is chosen at run time.
// CHECK-LABEL: @main(
// CHECK: arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: linalg.generic
// CHECK: arith.select
// CHECK: tensor.extract %arg0
func.func @main(%x: tensor<?x3xf32>, %d: tensor<2xi64>) -> tensor<?x3xf32> {
  %0 = "migraphx.broadcast_with_dims"(%x, %d) : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// A static extent of 1 is known to be repeated: an index map, no arithmetic.
// CHECK: affine_map<(d0, d1) -> (0, d1)>
// CHECK-LABEL: @main(
// CHECK: linalg.generic
// CHECK-NOT: tensor.extract %arg0
// CHECK: linalg.yield
func.func @main(%x: tensor<1x3xf32>, %d: tensor<2xi64>) -> tensor<?x3xf32> {
  %0 = "migraphx.broadcast_with_dims"(%x, %d) : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
