// RUN: mgx-opt %s --mgx-dead-code-elimination --split-input-file | filecheck %s

// CHECK-LABEL: @chain
// CHECK-NEXT: return %arg0
func.func @chain(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %x : tensor<2xf32>
}

// -----

// One used result keeps an op; what is dead inside of a region goes.
// CHECK-LABEL: @parts
// CHECK: migraphx.topk
// CHECK: "migraphx.pointwise"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: migraphx.relu
// CHECK-NEXT: migraphx.yield
// CHECK-NOT: migraphx.neg
func.func @parts(%x: tensor<4xf32>) -> tensor<2xf32> {
  %0:2 = "migraphx.topk"(%x) {k = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  %1 = "migraphx.pointwise"(%0#0) ({
  ^bb0(%a: tensor<2xf32>):
    %2 = "migraphx.neg"(%a) : (tensor<2xf32>) -> tensor<2xf32>
    %3 = "migraphx.relu"(%a) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%3) : (tensor<2xf32>) -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// A capture is run for its effect.
// CHECK-LABEL: @effect
// CHECK: migraphx.capture
func.func @effect(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.capture"(%x) {ins_index = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// Results of an `if` that nobody uses go, and what the branches compute for them.
// CHECK-LABEL: @if_results
// CHECK: %[[R:.*]] = "migraphx.if"(%arg0) ({
// CHECK-NEXT: %[[N:.*]] = "migraphx.neg"(%arg1)
// CHECK-NEXT: "migraphx.yield"(%[[N]]) : (tensor<2xf32>) -> ()
// CHECK-NEXT: }, {
// CHECK-NEXT: "migraphx.yield"(%arg1) : (tensor<2xf32>) -> ()
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<2xf32>
// CHECK-NEXT: return %[[R]]
func.func @if_results(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0:2 = "migraphx.if"(%c) ({
    %1 = "migraphx.abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %2 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%1, %2) : (tensor<2xf32>, tensor<2xf32>) -> ()
  }, {
    %3 = "migraphx.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%3, %x) : (tensor<2xf32>, tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#1 : tensor<2xf32>
}

// -----

// What is run for its effect keeps the `if` around it.
// CHECK-LABEL: @if_effect
// CHECK: migraphx.if
// CHECK: migraphx.capture
func.func @if_effect(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.if"(%c) ({
    %1 = "migraphx.capture"(%x) {ins_index = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return %x : tensor<2xf32>
}

// -----

// A scan output that nobody reads goes; a carried value stays.
// CHECK-LABEL: @scan
// CHECK: %[[L:.*]]:2 = "migraphx.loop"
// CHECK-NOT: migraphx.exp
// CHECK: "migraphx.yield"(%{{.*}}, %[[V:.*]], %[[V]])
// CHECK-NEXT: scan_output_directions = array<i64: 1>
// CHECK: return %[[L]]#1
func.func @scan(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<2xf32>) -> tensor<?x2xf32> {
  %0:3 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2xf32>):
    %1 = "migraphx.neg"(%v) : (tensor<2xf32>) -> tensor<2xf32>
    %2 = "migraphx.exp"(%v) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%g, %1, %2, %1) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {scan_output_directions = array<i64: 0, 1>} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>, tensor<?x2xf32>)
  return %0#2 : tensor<?x2xf32>
}

// -----

// What a loop carries without a change is read from outside; what it changes it goes on carrying.
// CHECK-LABEL: @carried_without_a_change(
// CHECK: "migraphx.loop"(%arg0, %arg1, %arg2)
// CHECK: ^bb0(%{{.*}}: tensor<i64>, %[[C:.*]]: tensor<i1>, %[[S:.*]]: tensor<2xf32>):
// CHECK: %[[A:.*]] = "migraphx.add"(%[[S]], %arg3)
// CHECK: "migraphx.yield"(%[[C]], %[[A]], %[[S]]) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>)
// CHECK: return %{{.*}}#0, %arg3, %{{.*}}#1
func.func @carried_without_a_change(%n: tensor<i64>, %c: tensor<i1>, %s: tensor<2xf32>, %w: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<?x2xf32>) {
  %0:3 = "migraphx.loop"(%n, %c, %w, %s) ({
  ^bb0(%i: tensor<i64>, %going: tensor<i1>, %weight: tensor<2xf32>, %state: tensor<2xf32>):
    %1 = "migraphx.add"(%state, %weight) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%going, %weight, %1, %state) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {max_iterations = 8 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<?x2xf32>)
  return %0#1, %0#0, %0#2 : tensor<2xf32>, tensor<2xf32>, tensor<?x2xf32>
}

// -----

// Near miss: two values that change places.
// CHECK-LABEL: @carried_in_turn(
// CHECK: "migraphx.loop"(%arg0, %arg1, %arg2, %arg3)
func.func @carried_in_turn(%n: tensor<i64>, %c: tensor<i1>, %s: tensor<2xf32>, %w: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0:2 = "migraphx.loop"(%n, %c, %s, %w) ({
  ^bb0(%i: tensor<i64>, %going: tensor<i1>, %a: tensor<2xf32>, %b: tensor<2xf32>):
    "migraphx.yield"(%going, %b, %a) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {max_iterations = 8 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
}
