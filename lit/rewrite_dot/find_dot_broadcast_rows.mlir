// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @multibroadcast
// CHECK-NEXT: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6, 4>}
// CHECK-NEXT: %[[Y:.*]] = "migraphx.dot"(%[[X]], %arg1) : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
// CHECK-NEXT: %[[Z:.*]] = "migraphx.reshape"(%[[Y]]) {dims = array<i64: 2, 3, 5>}
// CHECK-NEXT: return %[[Z]]
func.func @multibroadcast(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 4, 5>} : (tensor<4x5xf32>) -> tensor<2x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// CHECK-LABEL: @broadcast_rank_4
// CHECK: "migraphx.dot"({{.*}}, %arg1) : (tensor<24x4xf32>, tensor<4x5xf32>) -> tensor<24x5xf32>
func.func @broadcast_rank_4(%x: tensor<2x4x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<2x4x3x5xf32> {
  %0 = "migraphx.broadcast"(%w) {axis = 2 : i64, out_lens = array<i64: 2, 4, 4, 5>} : (tensor<4x5xf32>) -> tensor<2x4x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x4x3x4xf32>, tensor<2x4x4x5xf32>) -> tensor<2x4x3x5xf32>
  return %1 : tensor<2x4x3x5xf32>
}

// -----

// A matrix with leading extents of 1, and a literal that is one by itself.
// CHECK-LABEL: @units
// CHECK-DAG: %[[W:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 4, 5>}
// CHECK-DAG: "migraphx.dot"({{.*}}, %[[W]]) : (tensor<6x4xf32>, tensor<4x5xf32>)
func.func @units(%x: tensor<2x3x4xf32>, %w: tensor<1x4x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 4, 5>} : (tensor<1x4x5xf32>) -> tensor<2x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// CHECK-LABEL: @literal
// CHECK: "migraphx.dot"({{.*}}) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
func.func @literal(%x: tensor<1x3x2xf32>) -> tensor<1x3x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[[1.0, 2.0], [3.0, 4.0]]]> : tensor<1x2x2xf32>} : () -> tensor<1x2x2xf32>
  %1 = "migraphx.dot"(%x, %w) : (tensor<1x3x2xf32>, tensor<1x2x2xf32>) -> tensor<1x3x2xf32>
  return %1 : tensor<1x3x2xf32>
}

// -----

// One run-time dim is left to be computed.
// CHECK-LABEL: @dynamic
// CHECK: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: -1, 4>} : (tensor<?x3x4xf32>) -> tensor<?x4xf32>
// CHECK: %[[Y:.*]] = "migraphx.dot"(%[[X]], %arg1) : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
// CHECK: "migraphx.reshape"(%[[Y]]) {dims = array<i64: -1, 3, 5>} : (tensor<?x5xf32>) -> tensor<?x3x5xf32>
func.func @dynamic(%x: tensor<?x3x4xf32>, %w: tensor<4x5xf32>, %r: tensor<?x1x1xf32>) -> tensor<?x3x5xf32> {
  %0 = "migraphx.multibroadcast"(%w, %r) : (tensor<4x5xf32>, tensor<?x1x1xf32>) -> tensor<?x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<?x3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x5xf32>
  return %1 : tensor<?x3x5xf32>
}

// -----

// Near misses: two run-time dims, a batch of matrices, a matrix repeated within itself, rank 2,
// an extent of 0.
// CHECK-LABEL: @two_dynamic
// CHECK-NOT: migraphx.reshape
func.func @two_dynamic(%x: tensor<?x?x4xf32>, %w: tensor<4x5xf32>, %r: tensor<?x1x1xf32>) -> tensor<?x?x5xf32> {
  %0 = "migraphx.multibroadcast"(%w, %r) : (tensor<4x5xf32>, tensor<?x1x1xf32>) -> tensor<?x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<?x?x4xf32>, tensor<?x4x5xf32>) -> tensor<?x?x5xf32>
  return %1 : tensor<?x?x5xf32>
}

// -----

// CHECK-LABEL: @batch
// CHECK-NOT: migraphx.reshape
func.func @batch(%x: tensor<2x3x4xf32>, %w: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %1 = "migraphx.dot"(%x, %w) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// CHECK-LABEL: @row
// CHECK-NOT: migraphx.reshape
func.func @row(%x: tensor<2x3x4xf32>, %w: tensor<1x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 4, 5>} : (tensor<1x5xf32>) -> tensor<2x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// CHECK-LABEL: @partial
// CHECK-NOT: "migraphx.dot"({{.*}}) : (tensor<12x4xf32>
func.func @partial(%x: tensor<2x2x3x4xf32>, %w: tensor<2x1x4x5xf32>) -> tensor<2x2x3x5xf32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 2, 4, 5>} : (tensor<2x1x4x5xf32>) -> tensor<2x2x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x2x3x4xf32>, tensor<2x2x4x5xf32>) -> tensor<2x2x3x5xf32>
  return %1 : tensor<2x2x3x5xf32>
}

// -----

// CHECK-LABEL: @empty
// CHECK-NOT: migraphx.reshape
func.func @empty(%x: tensor<2x0x4xf32>, %w: tensor<4x5xf32>) -> tensor<2x0x5xf32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 4, 5>} : (tensor<4x5xf32>) -> tensor<2x4x5xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x0x4xf32>, tensor<2x4x5xf32>) -> tensor<2x0x5xf32>
  return %1 : tensor<2x0x5xf32>
}

// -----

// CHECK-LABEL: @integers
// CHECK: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6, 4>}
// CHECK: "migraphx.quant_dot"(%[[X]], %arg1) {{.*}}: (tensor<6x4xui8>, tensor<4x5xi8>) -> tensor<6x5xi32>
func.func @integers(%x: tensor<2x3x4xui8>, %w: tensor<4x5xi8>) -> tensor<2x3x5xi32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 4, 5>} : (tensor<4x5xi8>) -> tensor<2x4x5xi8>
  %1 = "migraphx.quant_dot"(%x, %0) : (tensor<2x3x4xui8>, tensor<2x4x5xi8>) -> tensor<2x3x5xi32>
  return %1 : tensor<2x3x5xi32>
}
