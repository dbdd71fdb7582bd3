// RUN: mgx-opt %s --mgx-fuse-pointwise="max-inputs=2" | filecheck %s

// The third operand would be one too many.
// CHECK: %[[A:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: "migraphx.pointwise"(%[[A]], %arg2) ({
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.add"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %z) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
