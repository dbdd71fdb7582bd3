// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// The sum of the constants is small: the broadcast comes after it.
// CHECK-LABEL: @bias_and_beta
// CHECK: %[[S:.*]] = "migraphx.add"({{.*}}) : (tensor<1x2xf32>, tensor<1x2xf32>)
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%[[S]])
// CHECK: "migraphx.add"(%arg0, %[[B]])
// CHECK-NEXT: return
func.func @bias_and_beta(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<[[5.0, 7.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %ab = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 4, 2>} : (tensor<2xf32>) -> tensor<4x2xf32>
  %bb = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 4, 2>} : (tensor<1x2xf32>) -> tensor<4x2xf32>
  %0 = "migraphx.add"(%x, %ab) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = "migraphx.add"(%bb, %0) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: @no_constant
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0, %{{[0-9]+}})
// CHECK-NEXT: "migraphx.add"(%[[A]], %arg1)
func.func @no_constant(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// The inner sum is used again.
// CHECK-LABEL: @two_users
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0, %[[C:[0-9]+]])
// CHECK-NEXT: %[[B:.*]] = "migraphx.add"(%[[A]], %[[C]])
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @two_users(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// Adding 2**23 and taking it away rounds to an integer.
// CHECK-LABEL: @rounds
// CHECK: %[[A:.*]] = "migraphx.add"
// CHECK-NEXT: "migraphx.add"(%[[A]]
func.func @rounds(%y: tensor<2xf32>) -> tensor<2xf32> {
  %x = "migraphx.tanh"(%y) : (tensor<2xf32>) -> tensor<2xf32>
  %a = "migraphx.literal"() {value = dense<8388608.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<-8388608.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// The sum of the constants is rounded, and the input may be close to one of them; a product is rounded itself.
// CHECK-LABEL: @inexact
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0
// CHECK: "migraphx.add"(%[[A]]
// CHECK: %[[T:.*]] = "migraphx.tanh"
// CHECK: "migraphx.add"(%[[T]]
// CHECK-NEXT: return
func.func @inexact(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = "migraphx.literal"() {value = dense<[0.1, 0.2]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<[100.7, 200.3]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %t = "migraphx.tanh"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.add"(%t, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = "migraphx.add"(%2, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1, %3 : tensor<2xf32>, tensor<2xf32>
}
