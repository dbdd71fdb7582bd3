// RUN: mgx-opt %s --mgx-fuse-attention --split-input-file | filecheck %s

// Heads side by side: the kernel writes them so.
// CHECK-LABEL: @heads
// CHECK-NEXT: %[[K:.*]] = "migraphx.group"({{.*}}) ({
// CHECK: migraphx.softmax
// CHECK-NEXT: migraphx.dot
// CHECK-NEXT: migraphx.transpose
// CHECK-NEXT: migraphx.reshape
// CHECK: }) {tag = "attention"} {{.*}} -> tensor<4x6xf32>
// CHECK-NEXT: return %[[K]]
func.func @heads(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<4x6xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  %x = "migraphx.transpose"(%o) {permutation = array<i64: 1, 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  %y = "migraphx.reshape"(%x) {dims = array<i64: 4, 6>} : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// Near misses. The depth is not last: a tile would be no rows.
// CHECK-LABEL: @turned
// CHECK: }) {tag = "attention"} {{.*}} -> tensor<2x4x3xf32>
// CHECK-NEXT: migraphx.transpose
func.func @turned(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x3x4xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  %x = "migraphx.transpose"(%o) {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  return %x : tensor<2x3x4xf32>
}

// -----

// Queries and depth in one dim.
// CHECK-LABEL: @joined
// CHECK: }) {tag = "attention"} {{.*}} -> tensor<2x4x3xf32>
// CHECK-NEXT: migraphx.reshape
func.func @joined(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x12xf32> {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  %x = "migraphx.reshape"(%o) {dims = array<i64: 2, 12>} : (tensor<2x4x3xf32>) -> tensor<2x12xf32>
  return %x : tensor<2x12xf32>
}

// -----

// It is read elsewhere too.
// CHECK-LABEL: @used
// CHECK: }) {tag = "attention"} {{.*}} -> tensor<2x4x3xf32>
// CHECK-NEXT: migraphx.transpose
func.func @used(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>) -> (tensor<4x2x3xf32>, tensor<2x4x3xf32>) {
  %t = "migraphx.transpose"(%k) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%q, %t) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  %x = "migraphx.transpose"(%o) {permutation = array<i64: 1, 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  return %x, %o : tensor<4x2x3xf32>, tensor<2x4x3xf32>
}

// -----

// No attention.
// CHECK-LABEL: @other
// CHECK: migraphx.dot
// CHECK-NEXT: migraphx.transpose
func.func @other(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32>) -> tensor<4x2x6xf32> {
  %o = "migraphx.dot"(%q, %k) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %x = "migraphx.transpose"(%o) {permutation = array<i64: 1, 0, 2>} : (tensor<2x4x6xf32>) -> tensor<4x2x6xf32>
  return %x : tensor<4x2x6xf32>
}
