// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// The types of what follows, and of the function, are known then too.
// CHECK-LABEL: func.func @main(%arg0: tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK: "migraphx.multibroadcast"(%arg0) {{{.*}}out_lens = array<i64: 2, 3, 4>} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK: "migraphx.neg"({{.*}}) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK: return
func.func @main(%x: tensor<3x1xf32>) -> tensor<?x3x?xf32> {
  %d = "migraphx.literal"() {value = dense<[2, 1, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = "migraphx.broadcast_with_dims"(%x, %d) : (tensor<3x1xf32>, tensor<3xi64>) -> tensor<?x3x?xf32>
  %1 = "migraphx.neg"(%0) : (tensor<?x3x?xf32>) -> tensor<?x3x?xf32>
  return %1 : tensor<?x3x?xf32>
}

// -----

// Near misses: dims that are known at run time only, a tensor of unknown extent.
// CHECK-LABEL: @stay
// CHECK-COUNT-2: migraphx.broadcast_with_dims
func.func @stay(%x: tensor<3x1xf32>, %y: tensor<?x1xf32>, %z: tensor<1x?xf32>) -> (tensor<3x?xf32>, tensor<?x?xf32>) {
  %d = "migraphx.dimensions_of"(%z) {start = 0 : i64, end = 2 : i64} : (tensor<1x?xf32>) -> tensor<2xi64>
  %0 = "migraphx.broadcast_with_dims"(%x, %d) : (tensor<3x1xf32>, tensor<2xi64>) -> tensor<3x?xf32>
  %c = "migraphx.literal"() {value = dense<[1, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %1 = "migraphx.broadcast_with_dims"(%y, %c) : (tensor<?x1xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0, %1 : tensor<3x?xf32>, tensor<?x?xf32>
}
