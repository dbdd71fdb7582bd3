// RUN: mgx-opt %s --mgx-rewrite-dot="shared-heads" --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s --check-prefix=OFF

// Scores of one query for each of six heads, of which three share keys.
// CHECK-LABEL: @scores
// CHECK: %[[K:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 2, 5, 4>}
// CHECK: %[[T:.*]] = "migraphx.transpose"(%[[K]]) {permutation = array<i64: 0, 2, 1>}
// CHECK: %[[Q:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 2, 3, 4>}
// CHECK: "migraphx.dot"(%[[Q]], %[[T]]) {{.*}} -> tensor<2x3x5xf32>
// OFF-LABEL: @scores
// OFF: migraphx.multibroadcast
func.func @scores(%q: tensor<1x6x1x4xf32>, %k: tensor<1x2x5x4xf32>) -> tensor<1x6x1x5xf32> {
  %0 = "migraphx.unsqueeze"(%k) {axes = array<i64: 2>} : (tensor<1x2x5x4xf32>) -> tensor<1x2x1x5x4xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 1, 2, 3, 5, 4>} : (tensor<1x2x1x5x4xf32>) -> tensor<1x2x3x5x4xf32>
  %2 = "migraphx.reshape"(%1) {dims = array<i64: 1, 6, 5, 4>} : (tensor<1x2x3x5x4xf32>) -> tensor<1x6x5x4xf32>
  %3 = "migraphx.transpose"(%2) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x6x5x4xf32>) -> tensor<1x6x4x5xf32>
  %4 = "migraphx.dot"(%q, %3) : (tensor<1x6x1x4xf32>, tensor<1x6x4x5xf32>) -> tensor<1x6x1x5xf32>
  return %4 : tensor<1x6x1x5xf32>
}

// -----

// Values are read in their order, of two batch entries.
// CHECK-LABEL: @values
// CHECK-NOT: migraphx.multibroadcast
// CHECK-NOT: migraphx.transpose
// CHECK: "migraphx.dot"({{.*}} -> tensor<4x3x4xf32>
func.func @values(%p: tensor<2x6x1x5xf32>, %v: tensor<2x2x5x4xf32>) -> tensor<2x6x1x4xf32> {
  %0 = "migraphx.unsqueeze"(%v) {axes = array<i64: 2>} : (tensor<2x2x5x4xf32>) -> tensor<2x2x1x5x4xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 2, 2, 3, 5, 4>} : (tensor<2x2x1x5x4xf32>) -> tensor<2x2x3x5x4xf32>
  %2 = "migraphx.reshape"(%1) {dims = array<i64: 2, 6, 5, 4>} : (tensor<2x2x3x5x4xf32>) -> tensor<2x6x5x4xf32>
  %3 = "migraphx.dot"(%p, %2) : (tensor<2x6x1x5xf32>, tensor<2x6x5x4xf32>) -> tensor<2x6x1x4xf32>
  return %3 : tensor<2x6x1x4xf32>
}

// -----

// Two queries are no row, and 16 bits have an attention kernel.
// CHECK-LABEL: @rows
// CHECK: migraphx.multibroadcast
func.func @rows(%q: tensor<1x6x2x4xf32>, %v: tensor<1x2x4x5xf32>) -> tensor<1x6x2x5xf32> {
  %0 = "migraphx.unsqueeze"(%v) {axes = array<i64: 2>} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x4x5xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 1, 2, 3, 4, 5>} : (tensor<1x2x1x4x5xf32>) -> tensor<1x2x3x4x5xf32>
  %2 = "migraphx.reshape"(%1) {dims = array<i64: 1, 6, 4, 5>} : (tensor<1x2x3x4x5xf32>) -> tensor<1x6x4x5xf32>
  %3 = "migraphx.dot"(%q, %2) : (tensor<1x6x2x4xf32>, tensor<1x6x4x5xf32>) -> tensor<1x6x2x5xf32>
  return %3 : tensor<1x6x2x5xf32>
}

// -----

// CHECK-LABEL: @narrow
// CHECK: migraphx.multibroadcast
func.func @narrow(%q: tensor<1x6x1x4xf16>, %v: tensor<1x2x4x5xf16>) -> tensor<1x6x1x5xf16> {
  %0 = "migraphx.unsqueeze"(%v) {axes = array<i64: 2>} : (tensor<1x2x4x5xf16>) -> tensor<1x2x1x4x5xf16>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 1, 2, 3, 4, 5>} : (tensor<1x2x1x4x5xf16>) -> tensor<1x2x3x4x5xf16>
  %2 = "migraphx.reshape"(%1) {dims = array<i64: 1, 6, 4, 5>} : (tensor<1x2x3x4x5xf16>) -> tensor<1x6x4x5xf16>
  %3 = "migraphx.dot"(%q, %2) : (tensor<1x6x1x4xf16>, tensor<1x6x4x5xf16>) -> tensor<1x6x1x5xf16>
  return %3 : tensor<1x6x1x5xf16>
}
