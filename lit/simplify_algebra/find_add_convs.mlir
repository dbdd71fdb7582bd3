// RUN: mgx-opt %s --mgx-simplify-algebra=all-forms=true --split-input-file | filecheck %s

// CHECK-LABEL: @same
// CHECK-DAG: %[[X:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 1
// CHECK-DAG: %[[W:.*]] = "migraphx.concat"({{.*}}) {axis = 1
// CHECK: %[[C:.*]] = "migraphx.convolution"(%[[X]], %[[W]]) {{.*}}padding = array<i64: 1, 1>
// CHECK-NEXT: return %[[C]]
func.func @same(%x: tensor<1x1x2x2xf32>, %y: tensor<1x2x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %u = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x3x3xf32>} : () -> tensor<1x1x3x3xf32>
  %v = "migraphx.literal"() {value = dense<3.0> : tensor<1x2x3x3xf32>} : () -> tensor<1x2x3x3xf32>
  %0 = "migraphx.convolution"(%x, %u) {padding = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%y, %v) {padding = array<i64: 1, 1>} : (tensor<1x2x2x2xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x2x2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %2 : tensor<1x1x2x2xf32>
}

// -----

// A shortcut of stride 2 beside one of stride 1.
// CHECK-LABEL: @strides
// CHECK: %[[S:.*]] = "migraphx.step"(%arg1) {axes = array<i64: 2, 3>, steps = array<i64: 2, 2>}
// CHECK-NEXT: %[[X:.*]] = "migraphx.concat"(%arg0, %[[S]])
// CHECK: "migraphx.convolution"(%[[X]], %{{.*}}) {{.*}}stride = array<i64: 1, 1>
func.func @strides(%x: tensor<1x1x2x2xf32>, %y: tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32> {
  %u = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %v = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %u) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%y, %v) {stride = array<i64: 2, 2>} : (tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %2 : tensor<1x1x2x2xf32>
}

// -----

// Near misses: windows that differ, a convolution that is used otherwise too, weights of a call.
// CHECK-LABEL: @windows
// CHECK-COUNT-2: migraphx.convolution
// CHECK-NEXT: migraphx.add
func.func @windows(%x: tensor<1x1x2x2xf32>, %y: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %u = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x3x3xf32>} : () -> tensor<1x1x3x3xf32>
  %v = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %u) {padding = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%y, %v) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %2 : tensor<1x1x2x2xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK-COUNT-2: migraphx.convolution
// CHECK-NEXT: migraphx.add
func.func @used(%x: tensor<1x1x2x2xf32>, %y: tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %u = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %v = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %u) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%y, %v) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %0, %2 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

// -----

// CHECK-LABEL: @weights_of_a_call
// CHECK-COUNT-2: migraphx.convolution
// CHECK-NEXT: migraphx.add
func.func @weights_of_a_call(%x: tensor<1x1x2x2xf32>, %u: tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32> {
  %v = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %u) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %1 = "migraphx.convolution"(%x, %v) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %2 : tensor<1x1x2x2xf32>
}
