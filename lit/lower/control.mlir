// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64 --split-input-file | filecheck %s

// A loop of a known number of iterations: a buffer that each writes its row of, a kernel inside.
// CHECK-LABEL: @main
// CHECK: %[[M:.*]] = "flow.tensor.alloca"() : () -> tensor<4x2xf32>
// CHECK: %[[B:.*]] = "util.optimization_barrier"(%[[M]])
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[V:.*]] = %arg0, %[[A:.*]] = %[[B]])
// CHECK: flow.dispatch.region
// CHECK: arith.negf
// CHECK: %[[U:.*]] = tensor.insert_slice %{{.*}} into %[[A]][%[[I]], 0] [1, 2] [1, 1]
// CHECK: %[[W:.*]] = "flow.tensor.transfer"(%[[U]])
// CHECK: scf.yield %{{.*}}, %[[W]]
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  %n = "migraphx.literal"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0:2 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2xf32>):
    %1 = "migraphx.pointwise"(%v) ({
    ^bb0(%a: tensor<2xf32>):
      %2 = "migraphx.neg"(%a) : (tensor<2xf32>) -> tensor<2xf32>
      "migraphx.yield"(%2) : (tensor<2xf32>) -> ()
    }) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%g, %1, %1) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {max_iterations = 4 : i64, padded = true} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<4x2xf32>
}

// -----

// A condition that the body computes; the integer it depends on is a scalar of the host. A tensor
// is computed ahead of the loop (hazard 48).
// CHECK-LABEL: @main
// CHECK: %[[X:.*]] = "util.optimization_barrier"(%arg1)
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %[[X]], %{{.*}} = %{{.*}}) : (index, i1, tensor<2xf32>, i64)
// CHECK: scf.condition
// CHECK: arith.addi {{.*}} : i64
// CHECK: arith.cmpi slt, {{.*}} : i64
// CHECK-NOT: tensor.extract
// CHECK: scf.yield
func.func @main(%n: tensor<i64>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<i64>) {
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %m = "migraphx.literal"() {value = dense<9> : tensor<i64>} : () -> tensor<i64>
  %k = "migraphx.literal"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %0:2 = "migraphx.loop"(%n, %c, %x, %k) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2xf32>, %s: tensor<i64>):
    %1 = "migraphx.add"(%s, %i) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %2 = "migraphx.less"(%1, %m) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %3 = "migraphx.convert"(%2) {target_type = i1} : (tensor<i64>) -> tensor<i1>
    %4 = "migraphx.neg"(%v) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%3, %4, %1) : (tensor<i1>, tensor<2xf32>, tensor<i64>) -> ()
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<i64>) -> (tensor<2xf32>, tensor<i64>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<i64>
}

// -----

// A tensor whose extents differ by branch comes out as a view, which holds them.
// CHECK-LABEL: @main
// CHECK: %[[R:.*]] = scf.if %{{.*}} -> (!hal.buffer_view) {
// CHECK: tensor.cast %arg1 : tensor<2xf32> to tensor<?xf32>
// CHECK: "hal.tensor.export"
// CHECK: } else {
// CHECK: "hal.tensor.export"
// CHECK: %[[N:.*]] = "hal.buffer_view.dim"(%[[R]])
// CHECK: "hal.tensor.import"(%[[R]], %[[N]])
func.func @main(%c: tensor<i1>, %x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<?xf32> {
  %0 = "migraphx.if"(%c) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%y) : (tensor<3xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A condition that is known leaves its branch alone.
// CHECK-LABEL: @main
// CHECK-NOT: scf.if
// CHECK: tensor.cast %arg1
func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<?xf32> {
  %c = "migraphx.literal"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %0 = "migraphx.if"(%c) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%y) : (tensor<3xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Tensors of run-time extents cross the border of a loop as views, both ways.
// CHECK-LABEL: @main
// CHECK: %[[A:.*]] = "hal.tensor.export"(
// CHECK: %[[B:.*]] = "hal.tensor.export"(
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %[[A]], %{{.*}} = %[[B]])
// CHECK: } do {
// CHECK: "hal.tensor.import"
// CHECK: "hal.tensor.import"
// CHECK: %[[V:.*]] = "hal.tensor.export"
// CHECK: %[[W:.*]] = "hal.tensor.export"
// CHECK: scf.yield %{{.*}}, %[[V]], %[[W]]
func.func @main(%n: tensor<i64>, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0:2 = "migraphx.loop"(%n, %c, %x, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %a: tensor<?xf32>, %b: tensor<?xf32>):
    %1 = "migraphx.exp"(%a) : (tensor<?xf32>) -> tensor<?xf32>
    %2 = "migraphx.neg"(%b) : (tensor<?xf32>) -> tensor<?xf32>
    "migraphx.yield"(%g, %1, %2) : (tensor<i1>, tensor<?xf32>, tensor<?xf32>) -> ()
  }) : (tensor<i64>, tensor<i1>, tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}
