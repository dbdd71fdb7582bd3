// A choice between two equal values is the value: IREE has no code for a loop that copies on a GPU.
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' | filecheck %s

// CHECK-LABEL: @main(
// CHECK-SAME: [[C:%.+]]: tensor<2xi1>, [[X:%.+]]: tensor<2xf32>
// CHECK-NOT: linalg.generic
// CHECK: return [[X]]
func.func @equal(%c: tensor<2xi1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.group"(%c, %x) ({
  ^bb0(%a: tensor<2xi1>, %b: tensor<2xf32>):
    %1 = "migraphx.where"(%a, %b, %b) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
  }) {tag = "pointwise"} : (tensor<2xi1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
