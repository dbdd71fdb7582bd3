// Control flow and placeholders: round trip; no segment sizes have to be written.
// RUN: mgx-opt %s --split-input-file --verify-roundtrip | filecheck %s

// CHECK-LABEL: @if_captures(
// CHECK: %0 = "migraphx.if"(%arg0) ({
// CHECK-NEXT:   "migraphx.yield"(%arg1) : (tensor<2xf32>) -> ()
// CHECK-NEXT: }, {
// CHECK-NEXT:   %1 = "migraphx.neg"(%arg1) : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:   "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<2xf32>
func.func @if_captures(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.if"(%c) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    %1 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// branches of different extents, and operands as block arguments
// CHECK-LABEL: @if_joins(
// CHECK: %0:2 = "migraphx.if"(%arg0, %arg1, %arg2) ({
// CHECK-NEXT: ^bb0(%arg3: tensor<2xf32>, %arg4: tensor<i64>):
// CHECK: }) : (tensor<1xi1>, tensor<2xf32>, tensor<i64>) -> (tensor<?xf32>, tensor<i64>)
func.func @if_joins(%c: tensor<1xi1>, %x: tensor<2xf32>, %n: tensor<i64>) -> tensor<?xf32> {
  %0:2 = "migraphx.if"(%c, %x, %n) ({
  ^bb0(%a: tensor<2xf32>, %b: tensor<i64>):
    "migraphx.yield"(%a, %b) : (tensor<2xf32>, tensor<i64>) -> ()
  }, {
  ^bb0(%a: tensor<2xf32>, %b: tensor<i64>):
    %1 = "migraphx.concat"(%a, %a) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    "migraphx.yield"(%1, %b) : (tensor<4xf32>, tensor<i64>) -> ()
  }) : (tensor<1xi1>, tensor<2xf32>, tensor<i64>) -> (tensor<?xf32>, tensor<i64>)
  return %0#0 : tensor<?xf32>
}

// -----

// CHECK-LABEL: @loop(
// CHECK: %0:2 = "migraphx.loop"(%arg0, %arg1, %arg2) ({
// CHECK-NEXT: ^bb0(%arg3: tensor<i64>, %arg4: tensor<i1>, %arg5: tensor<2xf32>):
// CHECK: }) {scan_output_directions = array<i64: 1>} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>)
func.func @loop(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) -> tensor<?x2xf32> {
  %0:2 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %1 = "migraphx.add"(%v, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%c, %1, %1) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {scan_output_directions = array<i64: 1>} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>)
  return %0#1 : tensor<?x2xf32>
}

// -----

// CHECK-LABEL: @padded_loop(
// CHECK: {max_iterations = 7 : i64, padded = true} : (tensor<1xi32>, tensor<1xi1>) -> tensor<7xi64>
func.func @padded_loop(%n: tensor<1xi32>, %t: tensor<1xi1>) -> tensor<7xi64> {
  %0 = "migraphx.loop"(%n, %t) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>):
    "migraphx.yield"(%c, %i) : (tensor<i1>, tensor<i64>) -> ()
  }) {max_iterations = 7 : i64, padded = true} : (tensor<1xi32>, tensor<1xi1>) -> tensor<7xi64>
  return %0 : tensor<7xi64>
}

// -----

// CHECK-LABEL: @select(
// CHECK: "migraphx.select_module"(%arg0, %arg1) {callees = [@one]} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?xf32>
func.func private @one(%x: tensor<1xf32>, %y: tensor<2xi64>) -> tensor<1xf32> {
  return %x : tensor<1xf32>
}
func.func @select(%x: tensor<?xf32>, %y: tensor<2xi64>) -> tensor<?xf32> {
  %0 = "migraphx.select_module"(%x, %y) {callees = [@one]} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// CHECK-LABEL: @target(
// CHECK: "migraphx.run_on_target"(%arg0) ({
// CHECK: }) {target_id = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
func.func @target(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.run_on_target"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    "migraphx.yield"(%a) : (tensor<2xf32>) -> ()
  }) {target_id = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @placeholders(
// CHECK: "migraphx.undefined"() : () -> tensor<0xf32>
// CHECK: "migraphx.undefined"() : () -> tensor<?x3xi64>
// CHECK: "migraphx.outline"() {shape = tensor<2x3xf32>} : () -> tensor<2x3xf32>
// CHECK: "migraphx.capture"(%arg0) {ins_index = 3 : i64} : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: "migraphx.unknown"(%arg0, %arg1) {op = "MyOp"} : (tensor<2xf32>, tensor<64xi8>) -> (tensor<?xf32>, tensor<3xi64>)
// CHECK: "migraphx.load"(%arg1) {offset = 16 : i64, shape = tensor<4xf32>} : (tensor<64xi8>) -> tensor<4xf32>
// CHECK: "migraphx.as_shape"(%arg0) {shape = tensor<2x1xf32>} : (tensor<2xf32>) -> tensor<2x1xf32>
func.func @placeholders(%x: tensor<2xf32>, %buffer: tensor<64xi8>) {
  %0 = "migraphx.undefined"() : () -> tensor<0xf32>
  %1 = "migraphx.undefined"() : () -> tensor<?x3xi64>
  %2 = "migraphx.outline"() {shape = tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %3 = "migraphx.capture"(%x) {ins_index = 3 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %4:2 = "migraphx.unknown"(%x, %buffer) {op = "MyOp"} : (tensor<2xf32>, tensor<64xi8>) -> (tensor<?xf32>, tensor<3xi64>)
  %5 = "migraphx.load"(%buffer) {shape = tensor<4xf32>, offset = 16 : i64} : (tensor<64xi8>) -> tensor<4xf32>
  %6 = "migraphx.as_shape"(%x) {shape = tensor<2x1xf32>} : (tensor<2xf32>) -> tensor<2x1xf32>
  return
}
