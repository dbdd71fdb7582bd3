// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-dot=aligned=4 --split-input-file | filecheck %s --check-prefix=FOUR

// CHECK-LABEL: @ragged
// CHECK-NEXT: %[[A:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 6, 4, 8>}
// CHECK-NEXT: %[[B:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 6, 8, 4>}
// CHECK-NEXT: %[[Y:.*]] = "migraphx.dot"(%[[A]], %[[B]]) : (tensor<6x4x8xf32>, tensor<6x8x4xf32>) -> tensor<6x4x4xf32>
// CHECK-NEXT: "migraphx.reshape"(%[[Y]]) {dims = array<i64: 2, 3, 4, 4>}
// FOUR-LABEL: @ragged
// FOUR-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @ragged(%a: tensor<2x3x4x8xf32>, %b: tensor<2x3x8x4xf32>) -> tensor<2x3x4x4xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3x4x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x4x4xf32>
  return %0 : tensor<2x3x4x4xf32>
}

// -----

// CHECK-LABEL: @rank_5
// CHECK: "migraphx.dot"({{.*}}) : (tensor<12x5x7xf16>, tensor<12x7x3xf16>) -> tensor<12x5x3xf16>
func.func @rank_5(%a: tensor<2x3x2x5x7xf16>, %b: tensor<2x3x2x7x3xf16>) -> tensor<2x3x2x5x3xf16> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3x2x5x7xf16>, tensor<2x3x2x7x3xf16>) -> tensor<2x3x2x5x3xf16>
  return %0 : tensor<2x3x2x5x3xf16>
}

// -----

// Near misses: whole tiles, rank 3, run-time dims, an extent of 0.
// CHECK-LABEL: @tiles
// CHECK-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @tiles(%a: tensor<1x2x16x32xf32>, %b: tensor<1x2x32x16xf32>) -> tensor<1x2x16x16xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<1x2x16x32xf32>, tensor<1x2x32x16xf32>) -> tensor<1x2x16x16xf32>
  return %0 : tensor<1x2x16x16xf32>
}

// -----

// CHECK-LABEL: @rank_3
// CHECK-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @rank_3(%a: tensor<2x5x7xf32>, %b: tensor<2x7x3xf32>) -> tensor<2x5x3xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x5x7xf32>, tensor<2x7x3xf32>) -> tensor<2x5x3xf32>
  return %0 : tensor<2x5x3xf32>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @dynamic(%a: tensor<?x2x5x7xf32>, %b: tensor<?x2x7x3xf32>) -> tensor<?x2x5x3xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<?x2x5x7xf32>, tensor<?x2x7x3xf32>) -> tensor<?x2x5x3xf32>
  return %0 : tensor<?x2x5x3xf32>
}

// -----

// CHECK-LABEL: @empty
// CHECK-NEXT: "migraphx.dot"(%arg0, %arg1)
func.func @empty(%a: tensor<2x2x0x7xf32>, %b: tensor<2x2x7x3xf32>) -> tensor<2x2x0x3xf32> {
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x2x0x7xf32>, tensor<2x2x7x3xf32>) -> tensor<2x2x0x3xf32>
  return %0 : tensor<2x2x0x3xf32>
}

// -----

// The dots of an attention have the dims of what is between them.
// CHECK-LABEL: @attention
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x3x5x7xf32>, tensor<2x3x7x5xf32>) -> tensor<2x3x5x5xf32>
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x3x5x5xf32>, tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
// CHECK-NEXT: return
func.func @attention(%q: tensor<2x3x5x7xf32>, %k: tensor<2x3x7x5xf32>, %v: tensor<2x3x5x7xf32>, %m: tensor<2x3x5x5xf32>) -> tensor<2x3x5x7xf32> {
  %0 = "migraphx.dot"(%q, %k) : (tensor<2x3x5x7xf32>, tensor<2x3x7x5xf32>) -> tensor<2x3x5x5xf32>
  %1 = "migraphx.add"(%0, %m) : (tensor<2x3x5x5xf32>, tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  %2 = "migraphx.softmax"(%1) {axis = 3 : i64} : (tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  %3 = "migraphx.dot"(%2, %v) : (tensor<2x3x5x5xf32>, tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  return %3 : tensor<2x3x5x7xf32>
}
