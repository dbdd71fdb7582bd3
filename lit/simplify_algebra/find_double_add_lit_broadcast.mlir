// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @two_biases
// CHECK-DAG: %[[A:.*]] = "migraphx.tanh"(%arg0)
// CHECK-DAG: %[[B:.*]] = "migraphx.tanh"(%arg1)
// CHECK: %[[X:.*]] = "migraphx.add"(%[[A]], %[[B]])
// CHECK-NEXT: %[[C:.*]] = "migraphx.add"
// CHECK-NEXT: "migraphx.add"(%[[X]], %[[C]])
// CHECK-NEXT: return
func.func @two_biases(%v: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> {
  %x = "migraphx.tanh"(%v) : (tensor<2xf32>) -> tensor<2xf32>
  %y = "migraphx.tanh"(%w) : (tensor<2xf32>) -> tensor<2xf32>
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<[5.0, 7.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%b, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// One side has no constant.
// CHECK-LABEL: @one_bias
// CHECK-DAG: %[[A:.*]] = "migraphx.add"(%[[X:[0-9]+]], %{{[0-9]+}})
// CHECK-DAG: %[[B:.*]] = "migraphx.add"(%arg1, %arg1)
// CHECK: "migraphx.add"(%[[A]], %[[B]])
func.func @one_bias(%v: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %x = "migraphx.tanh"(%v) : (tensor<2xf32>) -> tensor<2xf32>
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%y, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// A residual: the sum with its bias is used again.
// CHECK-LABEL: @residual
// CHECK-DAG: %[[X:.*]] = "migraphx.tanh"(%arg0)
// CHECK-DAG: %[[Y:.*]] = "migraphx.tanh"(%arg1)
// CHECK-DAG: %[[A:.*]] = "migraphx.add"(%[[X]], %{{[0-9]+}})
// CHECK-DAG: %[[B:.*]] = "migraphx.add"(%[[Y]], %{{[0-9]+}})
// CHECK: %[[S:.*]] = "migraphx.add"(%[[A]], %[[B]])
// CHECK-NEXT: return %[[A]], %[[S]]
func.func @residual(%v: tensor<2xf32>, %w: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %x = "migraphx.tanh"(%v) : (tensor<2xf32>) -> tensor<2xf32>
  %y = "migraphx.tanh"(%w) : (tensor<2xf32>) -> tensor<2xf32>
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%y, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %2 : tensor<2xf32>, tensor<2xf32>
}

// -----

// Inputs may be close to what is subtracted from them.
// CHECK-LABEL: @exact
// CHECK-DAG: %[[A:.*]] = "migraphx.add"(%arg0, %{{[0-9]+}})
// CHECK-DAG: %[[B:.*]] = "migraphx.add"(%arg1, %{{[0-9]+}})
// CHECK: "migraphx.add"(%[[A]], %[[B]])
func.func @exact(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%y, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
