// RUN: mgx-opt %s --mgx-eliminate-common-subexpression --split-input-file | filecheck %s

// CHECK-LABEL: @equal
// CHECK-NEXT: %[[C:.*]] = "migraphx.literal"
// CHECK-NEXT: %[[A:.*]] = "migraphx.add"(%arg0, %[[C]])
// CHECK-NEXT: "migraphx.mul"(%[[A]], %[[A]])
// CHECK-NEXT: return
func.func @equal(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%b, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.mul"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// Equal kernels merge by their bodies.
// CHECK-LABEL: @kernels
// CHECK-COUNT-2: migraphx.pointwise
// CHECK-NOT: migraphx.pointwise
func.func @kernels(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %3 = "migraphx.neg"(%a) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%3) : (tensor<2xf32>) -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %3 = "migraphx.neg"(%a) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%3) : (tensor<2xf32>) -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %3 = "migraphx.abs"(%a) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%3) : (tensor<2xf32>) -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// A kernel uses nothing from outside, so that an equal op before it stays outside.
// CHECK-LABEL: @not_into_a_kernel
// CHECK: migraphx.literal
// CHECK: migraphx.pointwise
// CHECK: migraphx.literal
func.func @not_into_a_kernel(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %d = "migraphx.literal"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %3 = "migraphx.mul"(%a, %d) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%3) : (tensor<2xf32>) -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %c : tensor<2xf32>, tensor<2xf32>
}

// -----

// Near misses: another attribute, another order of operands, another effect.
// CHECK-LABEL: @different
// CHECK-COUNT-2: migraphx.softmax
// CHECK-COUNT-2: migraphx.sub
// CHECK-COUNT-2: migraphx.capture
func.func @different(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = "migraphx.softmax"(%x) {axis = 0 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.softmax"(%x) {axis = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.sub"(%0, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "migraphx.sub"(%1, %0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = "migraphx.capture"(%2) {ins_index = 0 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = "migraphx.capture"(%2) {ins_index = 0 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %4, %3 : tensor<2x2xf32>, tensor<2x2xf32>
}
