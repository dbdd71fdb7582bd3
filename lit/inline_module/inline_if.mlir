// RUN: mgx-opt %s --mgx-inline-module --split-input-file | filecheck %s

// CHECK-LABEL: @else
// CHECK-NOT: migraphx.if
// CHECK: %[[R:.*]] = "migraphx.neg"(%arg0)
// CHECK-NEXT: return %[[R]]
func.func @else(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<false> : tensor<1xi1>} : () -> tensor<1xi1>
  %0 = "migraphx.if"(%c, %x) ({
  ^bb0(%a: tensor<2xf32>):
    "migraphx.yield"(%y) : (tensor<2xf32>) -> ()
  }, {
  ^bb0(%a: tensor<2xf32>):
    %1 = "migraphx.neg"(%a) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
  }) : (tensor<1xi1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: a condition of the run; a branch of more precise dims than the result.
// CHECK-LABEL: @run_time
// CHECK: migraphx.if
func.func @run_time(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.if"(%c) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    %1 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @other_dims
// CHECK: migraphx.if
func.func @other_dims(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<?xf32> {
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0 = "migraphx.if"(%c) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%y) : (tensor<3xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
