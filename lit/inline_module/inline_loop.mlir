// RUN: mgx-opt %s --mgx-inline-module --split-input-file | filecheck %s

// CHECK-LABEL: @once
// CHECK-NOT: migraphx.loop
// CHECK: %[[V:.*]] = "migraphx.neg"(%arg0)
// CHECK-NEXT: %[[Z:.*]] = "migraphx.unsqueeze"(%[[V]]) {axes = array<i64: 0>
// CHECK: %[[P:.*]] = "migraphx.concat"(%[[Z]], %{{.*}}) {axis = 0 : i64}
// CHECK-NEXT: return %[[V]], %[[P]]
func.func @once(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
  %n = "migraphx.literal"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0:2 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2xf32>):
    %1 = "migraphx.neg"(%v) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%g, %1, %1) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {max_iterations = 3 : i64, padded = true} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<3x2xf32>
}

// -----

// CHECK-LABEL: @never
// CHECK-NOT: migraphx.loop
// CHECK: return %arg1
func.func @never(%n: tensor<i64>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %0 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2xf32>):
    %1 = "migraphx.neg"(%v) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%g, %1) : (tensor<i1>, tensor<2xf32>) -> ()
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: twice; a condition of the run; a scan output that does not state its length.
// CHECK-LABEL: @twice
// CHECK: migraphx.loop
func.func @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %n = "migraphx.literal"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2xf32>):
    %1 = "migraphx.neg"(%v) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%g, %1) : (tensor<i1>, tensor<2xf32>) -> ()
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @condition
// CHECK: migraphx.loop
func.func @condition(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %n = "migraphx.literal"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %0 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2xf32>):
    %1 = "migraphx.neg"(%v) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%g, %1) : (tensor<i1>, tensor<2xf32>) -> ()
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @length
// CHECK: migraphx.loop
func.func @length(%x: tensor<2xf32>) -> tensor<?x2xf32> {
  %n = "migraphx.literal"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0 = "migraphx.loop"(%n, %c) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>):
    "migraphx.yield"(%g, %x) : (tensor<i1>, tensor<2xf32>) -> ()
  }) : (tensor<i64>, tensor<i1>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
