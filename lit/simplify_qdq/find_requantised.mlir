// RUN: mgx-opt %s --mgx-simplify-qdq=requantised=true --split-input-file | filecheck %s

// One factor, 0.5 / 0.25, in place of two.
// CHECK-LABEL: @sums
// CHECK: %[[S:.*]] = "migraphx.literal"() {value = dense<2.000000e+00> : tensor<2x3xf32>}
// CHECK-NEXT: %[[Y:.*]] = "migraphx.dequantizelinear"(%arg0, %[[S]])
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[Y]])
// CHECK-NEXT: "migraphx.literal"() {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: %[[Q:.*]] = "migraphx.quantizelinear"(%[[R]]
// CHECK-NEXT: return %[[Q]]
func.func @sums(%x: tensor<2x3xi32>) -> tensor<2x3xui8> {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %t = "migraphx.literal"() {value = dense<0.25> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.relu"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.quantizelinear"(%1, %t) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xui8>
  return %2 : tensor<2x3xui8>
}

// -----

// The value itself is a result too.
// CHECK-LABEL: @read_twice
// CHECK: "migraphx.literal"() {value = dense<2.5{{.*}}e-01>
// CHECK: "migraphx.quantizelinear"
func.func @read_twice(%x: tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xui8>) {
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %t = "migraphx.literal"() {value = dense<0.25> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %0 = "migraphx.dequantizelinear"(%x, %s) : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.quantizelinear"(%0, %t) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xui8>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xui8>
}
