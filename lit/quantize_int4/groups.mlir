// RUN: mgx-opt %s --mgx-quantize-int4=group-size=2 --split-input-file | filecheck %s

// Two neighbours of a column share a step and what stands for 0.
// CHECK-LABEL: @columns
// CHECK-DAG: dense<{{\[}}{{\[}}[1.000000e+00, 1.000000e+00]], {{\[}}[2.000000e+00, 1.000000e+00]]]> : tensor<2x1x2xf32>
// CHECK-DAG: dense<{{\[}}{{\[}}[5, 0]], {{\[}}[0, 0]]]> : tensor<2x1x2xui8>
// CHECK: "migraphx.multibroadcast"({{.*}}) {{.*}} -> tensor<2x2x2xui8>
// CHECK: "migraphx.reshape"({{.*}}) {{.*}} -> tensor<4x2xui8>
// CHECK: "migraphx.pack_int4"({{.*}}) {{.*}} -> tensor<4x1xui8>
// CHECK: "migraphx.dot"
func.func @columns(%x: tensor<2x4xf32>) -> tensor<2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[-5.0, 15.0], [10.0, 0.0], [30.0, 15.0], [4.0, 3.0]]> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Three rows are no multiple of two: the tensor has one step.
// CHECK-LABEL: @odd
// CHECK: dense<1.000000e+00> : tensor<f32>
// CHECK-NOT: migraphx.reshape
// CHECK: "migraphx.pack_int4"
func.func @odd(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %w = "migraphx.literal"() {value = dense<[[15.0, 0.0], [3.0, 4.0], [1.0, 2.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
