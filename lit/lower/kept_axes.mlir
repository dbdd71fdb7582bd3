// A reduced axis that is kept is an expand_shape in a kernel, also between several dynamic dims.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg='target=gpu arch=sm_90' | filecheck %s

// CHECK-LABEL: @main(
// CHECK: "flow.dispatch.region"
// CHECK-NOT: flow.tensor.reshape
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1, 2], [3]]{{.*}} : tensor<?x4x?xf32> into tensor<?x4x1x?xf32>
// CHECK: "flow.return"
func.func @kept(%x: tensor<?x4x16x?xf32>) -> tensor<?x4x1x?xf32> {
  %0 = "migraphx.softmax"(%x) {axis = 2 : i64} : (tensor<?x4x16x?xf32>) -> tensor<?x4x16x?xf32>
  %1 = "migraphx.mul"(%0, %0) : (tensor<?x4x16x?xf32>, tensor<?x4x16x?xf32>) -> tensor<?x4x16x?xf32>
  %2 = "migraphx.reduce_sum"(%1) {axes = array<i64: 2>} : (tensor<?x4x16x?xf32>) -> tensor<?x4x1x?xf32>
  return %2 : tensor<?x4x1x?xf32>
}
