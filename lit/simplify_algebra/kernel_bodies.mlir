// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// No rewrite of whole tensors looks into a kernel's body, of whatever kind: here x * 1.

// CHECK-LABEL: func.func @pointwise
// CHECK: migraphx.mul
func.func @pointwise(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %1 = "migraphx.literal"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
    %2 = "migraphx.mul"(%a, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    "migraphx.yield"(%2) : (tensor<4x8xf32>) -> ()
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @fused_reduce
// CHECK: migraphx.mul
func.func @fused_reduce(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %1 = "migraphx.literal"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
    %2 = "migraphx.mul"(%a, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = "migraphx.reduce_sum"(%2) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    "migraphx.yield"(%3) : (tensor<4x1xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// -----

// CHECK-LABEL: func.func @split_fused_reduce
// CHECK: migraphx.mul
func.func @split_fused_reduce(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %0 = "migraphx.split_fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %1 = "migraphx.literal"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
    %2 = "migraphx.mul"(%a, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = "migraphx.reduce_sum"(%2) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    "migraphx.yield"(%3) : (tensor<4x1xf32>) -> ()
  }) {axes = array<i64: 1>, assign = "assign_add"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// -----

// CHECK-LABEL: func.func @fused_concat
// CHECK: migraphx.mul
func.func @fused_concat(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %0 = "migraphx.fused_concat"(%x, %y) ({
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>):
    %1 = "migraphx.literal"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
    %2 = "migraphx.mul"(%a, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = "migraphx.concat"(%2, %b) {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
    "migraphx.yield"(%3) : (tensor<4x16xf32>) -> ()
  }) {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

// CHECK-LABEL: func.func @group
// CHECK: migraphx.mul
func.func @group(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>):
    %1 = "migraphx.literal"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
    %2 = "migraphx.mul"(%a, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = "migraphx.dot"(%2, %b) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    "migraphx.yield"(%3) : (tensor<4x2xf32>) -> ()
  }) {tag = "dot"} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// The same outside of a kernel is rewritten.

// CHECK-LABEL: func.func @outside
// CHECK-NOT: migraphx.mul
func.func @outside(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %1 = "migraphx.literal"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %2 = "migraphx.mul"(%x, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
