// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// CHECK-LABEL: @reshapes
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: 4, 6>}
// CHECK-NEXT: return
func.func @reshapes(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 24>} : (tensor<1x2x3x4xf32>) -> tensor<24xf32>
  %2 = "migraphx.reshape"(%1) {dims = array<i64: 4, 6>} : (tensor<24xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// -----

// A transpose through a reshape that keeps its borders, back and forth.
// CHECK-LABEL: @cancel
// CHECK-NEXT: return %arg0
func.func @cancel(%x: tensor<2x8x12xf32>) -> tensor<2x8x12xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 8, 3, 4>} : (tensor<2x8x12xf32>) -> tensor<2x8x3x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x8x3x4xf32>) -> tensor<2x3x8x4xf32>
  %2 = "migraphx.contiguous"(%1) : (tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  %3 = "migraphx.transpose"(%2) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x8x4xf32>) -> tensor<2x8x3x4xf32>
  %4 = "migraphx.reshape"(%3) {dims = array<i64: 2, 8, 12>} : (tensor<2x8x3x4xf32>) -> tensor<2x8x12xf32>
  return %4 : tensor<2x8x12xf32>
}

// -----

// A bias along the channels.
// CHECK-LABEL: @bias
// CHECK-NEXT: "migraphx.broadcast"(%arg0) {axis = 1 : i64, {{.*}}out_lens = array<i64: 2, 3, 4, 4>
// CHECK-NEXT: return
func.func @bias(%x: tensor<3xf32>) -> tensor<2x3x4x4xf32> {
  %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 1, 2>} : (tensor<3xf32>) -> tensor<3x1x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 2, 3, 4, 4>} : (tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32>
  return %1 : tensor<2x3x4x4xf32>
}

// -----

// Repeated key and value heads: what a broadcast and a reshape around it need, and no more.
// CHECK-LABEL: @repeat_heads
// CHECK-NEXT: "migraphx.reshape"(%arg0) {dims = array<i64: 1, 2, 1, 5, 4>}
// CHECK-NEXT: "migraphx.multibroadcast"
// CHECK-NEXT: "migraphx.reshape"(%{{.*}}) {dims = array<i64: 1, 6, 5, 4>}
// CHECK-NEXT: return
func.func @repeat_heads(%x: tensor<1x2x5x4xf32>) -> tensor<1x6x5x4xf32> {
  %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 2>} : (tensor<1x2x5x4xf32>) -> tensor<1x2x1x5x4xf32>
  %1 = "migraphx.squeeze"(%0) {axes = array<i64: 0>} : (tensor<1x2x1x5x4xf32>) -> tensor<2x1x5x4xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 1, 2, 3, 5, 4>} : (tensor<2x1x5x4xf32>) -> tensor<1x2x3x5x4xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 1, 6, 5, 4>} : (tensor<1x2x3x5x4xf32>) -> tensor<1x6x5x4xf32>
  return %3 : tensor<1x6x5x4xf32>
}

// -----

// Other users of the middle keep it.
// CHECK-LABEL: @middle_used
// CHECK-DAG: %[[M:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6>}
// CHECK-DAG: %[[E:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 3, 2>}
// CHECK: return %[[M]], %[[E]]
func.func @middle_used(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<3x2xf32>) {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 3, 2>} : (tensor<6xf32>) -> tensor<3x2xf32>
  return %0, %1 : tensor<6xf32>, tensor<3x2xf32>
}

// -----

// Near misses: the fewest already; a reshape across the border of a transpose; unknown extents.
// CHECK-LABEL: @heads
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: migraphx.transpose
// CHECK-NEXT: return
func.func @heads(%x: tensor<2x8x12xf32>) -> tensor<2x3x8x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 8, 3, 4>} : (tensor<2x8x12xf32>) -> tensor<2x8x3x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x8x3x4xf32>) -> tensor<2x3x8x4xf32>
  return %1 : tensor<2x3x8x4xf32>
}

// -----

// CHECK-LABEL: @across
// CHECK-NEXT: migraphx.transpose
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: migraphx.transpose
// CHECK-NEXT: return
func.func @across(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 3>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %2 : tensor<3x2xf32>
}

// -----

// CHECK-LABEL: @unknown
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: migraphx.reshape
func.func @unknown(%x: tensor<?x?xf32>) -> tensor<?x2xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1>} : (tensor<?x?xf32>) -> tensor<?xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: -1, 2>} : (tensor<?xf32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// A near miss: what another op uses too would be transposed twice; a reshape of it costs nothing.
// CHECK-LABEL: @transposed_once
// CHECK-COUNT-1: migraphx.transpose
// CHECK-NOT: migraphx.transpose
// CHECK: return
func.func @transposed_once(%x: tensor<4x6xf32>) -> (tensor<6x4xf32>, tensor<2x3x4xf32>) {
  %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 4, 2, 3>} : (tensor<1x4x6xf32>) -> tensor<4x2x3xf32>
  %2 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 6, 4>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  return %3, %2 : tensor<6x4xf32>, tensor<2x3x4xf32>
}
