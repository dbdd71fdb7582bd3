// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// The activation joins the dot, the views follow.
// CHECK-LABEL: @behind_a_dot
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[D]])
// CHECK-NEXT: %[[S:.*]] = "migraphx.reshape"(%[[R]])
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%[[S]])
// CHECK-NEXT: return %[[T]]
func.func @behind_a_dot(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>) -> tensor<2x4x4xf32> {
  %0 = "migraphx.dot"(%x, %w) : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 4, 2, 4>} : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
  %2 = "migraphx.transpose"(%1) {permutation = array<i64: 1, 0, 2>} : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
  %3 = "migraphx.relu"(%2) : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %3 : tensor<2x4x4xf32>
}

// -----

// A convert too, and a run-time extent is no obstacle.
// CHECK-LABEL: @convert
// CHECK-NEXT: %[[N:.*]] = "migraphx.neg"(%arg0)
// CHECK-NEXT: %[[C:.*]] = "migraphx.convert"(%[[N]]) {{.*}} : (tensor<?x4xf32>) -> tensor<?x4xf16>
// CHECK-NEXT: "migraphx.transpose"(%[[C]])
func.func @convert(%x: tensor<?x4xf32>) -> tensor<4x?xf16> {
  %0 = "migraphx.neg"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  %2 = "migraphx.convert"(%1) {target_type = f16} : (tensor<4x?xf32>) -> tensor<4x?xf16>
  return %2 : tensor<4x?xf16>
}

// -----

// Near misses: an argument is computed by no kernel, another user keeps the view or what it views.
// CHECK-LABEL: @argument
// CHECK-NEXT: "migraphx.transpose"
// CHECK-NEXT: "migraphx.relu"
func.func @argument(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = "migraphx.relu"(%0) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

// CHECK-LABEL: @other_users
// CHECK: %[[T:.*]] = "migraphx.transpose"
// CHECK: "migraphx.relu"(%[[T]])
// CHECK: %[[R:.*]] = "migraphx.reshape"
// CHECK: "migraphx.abs"(%[[R]])
func.func @other_users(%x: tensor<4x6xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<24xf32>, tensor<4x6xf32>) {
  %0 = "migraphx.neg"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = "migraphx.relu"(%1) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %3 = "migraphx.sqrt"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = "migraphx.reshape"(%3) {dims = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %5 = "migraphx.abs"(%4) : (tensor<24xf32>) -> tensor<24xf32>
  return %1, %2, %5, %3 : tensor<6x4xf32>, tensor<6x4xf32>, tensor<24xf32>, tensor<4x6xf32>
}
