// RUN: mgx-opt %s --mgx-rewrite-reduce --split-input-file | filecheck %s

// The scores, their scale and their mask stay in f32 up to the softmax.
// CHECK-LABEL: @attention
// CHECK: %[[DOT:.*]] = "migraphx.dot"(%arg0, %arg1)
// CHECK: %[[WIDE:.*]] = "migraphx.convert"(%[[DOT]]) {target_type = f32}
// CHECK: %[[MASK:.*]] = "migraphx.convert"(%arg2) {target_type = f32}
// CHECK: %[[SUM:.*]] = "migraphx.add"(%[[WIDE]], %[[MASK]]) : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
// CHECK: %[[P:.*]] = "migraphx.softmax"(%[[SUM]]) {axis = 2 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
// CHECK: "migraphx.convert"(%[[P]]) {target_type = f16}
func.func @attention(%q: tensor<2x4x8xf16>, %k: tensor<2x8x4xf16>, %m: tensor<2x4x4xf16>) -> tensor<2x4x4xf16> {
  %0 = "migraphx.dot"(%q, %k) : (tensor<2x4x8xf16>, tensor<2x8x4xf16>) -> tensor<2x4x4xf16>
  %1 = "migraphx.add"(%0, %m) : (tensor<2x4x4xf16>, tensor<2x4x4xf16>) -> tensor<2x4x4xf16>
  %2 = "migraphx.softmax"(%1) {axis = 2 : i64} : (tensor<2x4x4xf16>) -> tensor<2x4x4xf16>
  return %2 : tensor<2x4x4xf16>
}

// -----

// CHECK-LABEL: @f32
// CHECK-NOT: migraphx.convert
func.func @f32(%q: tensor<4x8xf32>, %k: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = "migraphx.dot"(%q, %k) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = "migraphx.softmax"(%0) {axis = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// Nothing is gained without a dot: the softmax computes in f32 by itself.
// CHECK-LABEL: @no_dot
// CHECK-NOT: migraphx.convert
func.func @no_dot(%x: tensor<4x4xf16>) -> tensor<4x4xf16> {
  %0 = "migraphx.neg"(%x) : (tensor<4x4xf16>) -> tensor<4x4xf16>
  %1 = "migraphx.softmax"(%0) {axis = 1 : i64} : (tensor<4x4xf16>) -> tensor<4x4xf16>
  return %1 : tensor<4x4xf16>
}

// -----

// Scores that something else reads are rounded anyway.
// CHECK-LABEL: @two_users
// CHECK-NOT: migraphx.convert
func.func @two_users(%q: tensor<4x8xf16>, %k: tensor<8x4xf16>) -> (tensor<4x4xf16>, tensor<4x4xf16>) {
  %0 = "migraphx.dot"(%q, %k) : (tensor<4x8xf16>, tensor<8x4xf16>) -> tensor<4x4xf16>
  %1 = "migraphx.softmax"(%0) {axis = 1 : i64} : (tensor<4x4xf16>) -> tensor<4x4xf16>
  return %0, %1 : tensor<4x4xf16>, tensor<4x4xf16>
}
