// Literals and kernel ops: round trip.
// RUN: mgx-opt %s --split-input-file | filecheck %s

// CHECK-LABEL: @literal
// CHECK: %0 = "migraphx.literal"() {value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK: %1 = "migraphx.literal"() {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
func.func @literal() -> (tensor<2xf32>, tensor<ui8>) {
  %0 = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "migraphx.literal"() {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  return %0, %1 : tensor<2xf32>, tensor<ui8>
}

// -----

// CHECK-LABEL: @pointwise
// CHECK: %0:2 = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: ^bb0(%arg2: tensor<?xf32>, %arg3: tensor<?xf32>):
// CHECK: "migraphx.yield"(%1, %2) : (tensor<?xf32>, tensor<?xf32>) -> ()
// CHECK: }) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
func.func @pointwise(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0:2 = "migraphx.pointwise"(%x, %y) ({
  ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
    %1 = "migraphx.add"(%a, %b) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %2 = "migraphx.relu"(%1) : (tensor<?xf32>) -> tensor<?xf32>
    "migraphx.yield"(%1, %2) : (tensor<?xf32>, tensor<?xf32>) -> ()
  }) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

// CHECK-LABEL: @reductions
// CHECK: "migraphx.fused_reduce"
// CHECK: {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
// CHECK: "migraphx.split_fused_reduce"
// CHECK: {assign = "assign_add", axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
func.func @reductions(%x: tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<2x3xf32>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    "migraphx.yield"(%1) : (tensor<2x1xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %2 = "migraphx.split_fused_reduce"(%x) ({
  ^bb0(%a: tensor<2x3xf32>):
    %3 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    "migraphx.yield"(%3) : (tensor<2x1xf32>) -> ()
  }) {axes = array<i64: 1>, assign = "assign_add"} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %0, %2 : tensor<2x1xf32>, tensor<2x1xf32>
}

// -----

// CHECK-LABEL: @groups
// CHECK: "migraphx.group"(%arg0, %arg1)
// CHECK: {tag = "dot"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
// CHECK: "migraphx.fused_concat"(%arg0, %arg0)
// CHECK: {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
func.func @groups(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<2x6xf32>) {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    "migraphx.yield"(%1) : (tensor<2x4xf32>) -> ()
  }) {tag = "dot"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %2 = "migraphx.fused_concat"(%x, %x) ({
  ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>):
    %3 = "migraphx.relu"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %4 = "migraphx.concat"(%3, %b) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
    "migraphx.yield"(%4) : (tensor<2x6xf32>) -> ()
  }) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return %0, %2 : tensor<2x4xf32>, tensor<2x6xf32>
}
