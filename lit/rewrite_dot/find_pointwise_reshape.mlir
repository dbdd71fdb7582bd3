// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// CHECK-LABEL: @chain
// CHECK-NEXT: %[[Y:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 6, 4>}
// CHECK-NEXT: %[[A:.*]] = "migraphx.add"(%arg0, %[[Y]]) : (tensor<6x4xf32>, tensor<6x4xf32>)
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[A]]) : (tensor<6x4xf32>)
// CHECK-NEXT: %[[Z:.*]] = "migraphx.reshape"(%[[R]]) {dims = array<i64: 2, 3, 4>}
// CHECK-NEXT: return %[[Z]]
func.func @chain(%x: tensor<6x4xf32>, %y: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.add"(%0, %y) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.relu"(%1) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// Broadcasts are made again over the flat dims: of the columns, of the rows, of one element.
// CHECK-LABEL: @columns
// CHECK: %[[W:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 1, 4>}
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%[[W]]) {{.*}}out_lens = array<i64: 6, 4>
// CHECK: "migraphx.mul"(%arg0, %[[B]]) : (tensor<6x4xf32>, tensor<6x4xf32>)
func.func @columns(%x: tensor<6x4xf32>, %w: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.broadcast"(%w) {axis = 2 : i64, out_lens = array<i64: 2, 3, 4>} : (tensor<4xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.mul"(%0, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @rows
// CHECK: %[[W:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 6, 1>}
// CHECK: "migraphx.multibroadcast"(%[[W]]) {{.*}}out_lens = array<i64: 6, 4>
func.func @rows(%x: tensor<6x4xf32>, %w: tensor<2x3x1xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 3, 4>} : (tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.mul"(%1, %0) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @element
// CHECK: "migraphx.where"({{.*}}) : (tensor<6x4xi1>, tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
func.func @element(%c: tensor<2x3x4xi1>, %x: tensor<6x4xf32>, %w: tensor<1xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.scalar"(%w) {scalar_bcst_dims = array<i64: 2, 3, 4>} : (tensor<1xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.where"(%c, %0, %1) : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// The batch dims of rank-3 operands in front of two kept ones.
// CHECK-LABEL: @heads
// CHECK: "migraphx.add"(%arg0, {{.*}}) : (tensor<6x4x5xf32>, tensor<6x4x5xf32>)
func.func @heads(%x: tensor<6x4x5xf32>, %mask: tensor<1x1x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4, 5>} : (tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32>
  %1 = "migraphx.multibroadcast"(%mask) {out_lens = array<i64: 2, 3, 4, 5>} : (tensor<1x1x4x5xf32>) -> tensor<2x3x4x5xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return %2 : tensor<2x3x4x5xf32>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"({{.*}}, %arg0) {{.*}} : (tensor<1x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK: "migraphx.add"(%arg0, %[[B]]) : (tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK: "migraphx.reshape"({{.*}}) {dims = array<i64: -1, 2, 4>} : (tensor<?x4xf32>) -> tensor<?x2x4xf32>
func.func @dynamic(%x: tensor<?x4xf32>, %w: tensor<4xf32>) -> tensor<?x2x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1, 2, 4>} : (tensor<?x4xf32>) -> tensor<?x2x4xf32>
  %1 = "migraphx.multibroadcast"(%w, %0) : (tensor<4xf32>, tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<?x2x4xf32>, tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
  return %2 : tensor<?x2x4xf32>
}

// -----

// Near misses: a broadcast of some of the leading dims (nothing may be left behind, or the driver
// would not end), columns that are split, an extent of 0.
// CHECK-LABEL: @partial
// CHECK-COUNT-1: migraphx.reshape
// CHECK-NOT: migraphx.reshape
func.func @partial(%x: tensor<6x4xf32>, %w: tensor<2x1x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 3, 4>} : (tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @columns_split
// CHECK: "migraphx.relu"({{.*}}) : (tensor<2x3x4xf32>)
func.func @columns_split(%x: tensor<2x12xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<2x12xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.relu"(%0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @empty
// CHECK: "migraphx.relu"({{.*}}) : (tensor<2x0x4xf32>)
func.func @empty(%x: tensor<0x4xf32>) -> tensor<2x0x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, -1, 4>} : (tensor<0x4xf32>) -> tensor<2x0x4xf32>
  %1 = "migraphx.relu"(%0) : (tensor<2x0x4xf32>) -> tensor<2x0x4xf32>
  return %1 : tensor<2x0x4xf32>
}
