// RUN: mgx-opt %s --mgx-fuse-concat --split-input-file | filecheck %s

// What follows a concatenation, with its broadcasts and numbers; its parts as they are.
// CHECK-LABEL: @after
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_concat"({{.*}}) ({
// CHECK: migraphx.concat
// CHECK: migraphx.mul
// CHECK: migraphx.add
// CHECK: }) {axis = 0 : i64}
// CHECK-NEXT: return %[[K]]
func.func @after(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>, %b: tensor<8xf32>) -> tensor<5x8xf32> {
  %l = "migraphx.literal"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 5, 8>} : (tensor<1xf32>) -> tensor<5x8xf32>
  %m = "migraphx.mul"(%c, %lw) : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %bw = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 5, 8>} : (tensor<8xf32>) -> tensor<5x8xf32>
  %a = "migraphx.add"(%m, %bw) : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %a : tensor<5x8xf32>
}

// -----

// Along the last axis: parts of whole numbers of eight elements. Bools are elements like others.
// CHECK-LABEL: @last_axis
// CHECK-NEXT: "migraphx.fused_concat"({{.*}}) ({
// CHECK: migraphx.concat
// CHECK-NEXT: migraphx.not
func.func @last_axis(%x: tensor<2x8xi1>, %y: tensor<2x24xi1>) -> tensor<2x32xi1> {
  %c = "migraphx.concat"(%x, %y) {axis = -1 : i64} : (tensor<2x8xi1>, tensor<2x24xi1>) -> tensor<2x32xi1>
  %n = "migraphx.not"(%c) : (tensor<2x32xi1>) -> tensor<2x32xi1>
  return %n : tensor<2x32xi1>
}

// -----

// Near misses. Three elements are no run of eight.
// CHECK-LABEL: @short_parts
// CHECK-NOT: migraphx.fused_concat
func.func @short_parts(%x: tensor<2x8xf32>, %y: tensor<2x3xf32>) -> tensor<2x11xf32> {
  %c = "migraphx.concat"(%x, %y) {axis = 1 : i64} : (tensor<2x8xf32>, tensor<2x3xf32>) -> tensor<2x11xf32>
  %n = "migraphx.relu"(%c) : (tensor<2x11xf32>) -> tensor<2x11xf32>
  return %n : tensor<2x11xf32>
}

// -----

// The concatenation is read elsewhere too.
// CHECK-LABEL: @used
// CHECK-NOT: migraphx.fused_concat
func.func @used(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %n = "migraphx.relu"(%c) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  return %n, %c : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// Nothing is computed; what follows belongs to a dot.
// CHECK-LABEL: @nothing
// CHECK-NOT: migraphx.fused_concat
func.func @nothing(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>) -> tensor<8x5xf32> {
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %n = "migraphx.transpose"(%c) {permutation = array<i64: 1, 0>} : (tensor<5x8xf32>) -> tensor<8x5xf32>
  return %n : tensor<8x5xf32>
}

// -----

// CHECK-LABEL: @residual
// CHECK-NOT: migraphx.fused_concat
func.func @residual(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>, %a: tensor<5x4xf32>, %b: tensor<4x8xf32>) -> tensor<5x8xf32> {
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %d = "migraphx.dot"(%a, %b) : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %n = "migraphx.add"(%d, %c) : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %n : tensor<5x8xf32>
}

// -----

// 64-bit elements; run-time dims.
// CHECK-LABEL: @wide
// CHECK-NOT: migraphx.fused_concat
func.func @wide(%x: tensor<2x8xf64>, %y: tensor<3x8xf64>) -> tensor<5x8xf64> {
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<2x8xf64>, tensor<3x8xf64>) -> tensor<5x8xf64>
  %n = "migraphx.relu"(%c) : (tensor<5x8xf64>) -> tensor<5x8xf64>
  return %n : tensor<5x8xf64>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK-NOT: migraphx.fused_concat
func.func @dynamic(%x: tensor<?x8xf32>, %y: tensor<3x8xf32>) -> tensor<?x8xf32> {
  %c = "migraphx.concat"(%x, %y) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<3x8xf32>) -> tensor<?x8xf32>
  %n = "migraphx.relu"(%c) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %n : tensor<?x8xf32>
}
