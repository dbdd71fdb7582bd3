// RUN: mgx-opt %s --mgx-rewrite-gelu --split-input-file | filecheck %s

// As exporters write it: half of x, the cube as x * x * x.
// CHECK-LABEL: @gelu
// CHECK-NOT: migraphx.tanh
// CHECK: %[[Y:.*]] = "migraphx.mul"(%{{.*}}, %{{.*}})
// CHECK: %[[E:.*]] = "migraphx.exp"
// CHECK: %[[S:.*]] = "migraphx.add"(%[[E]],
// CHECK: "migraphx.div"(%arg0, %[[S]])
func.func @gelu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %c = "migraphx.literal"() {value = dense<0.044715> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %r = "migraphx.literal"() {value = dense<0.797884583> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %0 = "migraphx.mul"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "migraphx.mul"(%0, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "migraphx.mul"(%1, %c) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "migraphx.add"(%x, %2) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "migraphx.mul"(%3, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "migraphx.tanh"(%4) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "migraphx.add"(%5, %one) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = "migraphx.mul"(%x, %half) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %8 = "migraphx.mul"(%7, %6) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %8 : tensor<4x8xf32>
}

// -----

// The half inside of the sum, the cube as a power, 16 bits.
// CHECK-LABEL: @folded
// CHECK: "migraphx.exp"
// CHECK: "migraphx.div"(%arg0, %{{.*}}) : (tensor<8xf16>, tensor<8xf16>)
func.func @folded(%x: tensor<8xf16>) -> tensor<8xf16> {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<8xf16>} : () -> tensor<8xf16>
  %three = "migraphx.literal"() {value = dense<3.0> : tensor<8xf16>} : () -> tensor<8xf16>
  %c = "migraphx.literal"() {value = dense<0.0357> : tensor<8xf16>} : () -> tensor<8xf16>
  %r = "migraphx.literal"() {value = dense<0.798> : tensor<8xf16>} : () -> tensor<8xf16>
  %0 = "migraphx.pow"(%x, %three) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %1 = "migraphx.mul"(%0, %c) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %2 = "migraphx.mul"(%x, %r) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %3 = "migraphx.add"(%1, %2) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %4 = "migraphx.tanh"(%3) : (tensor<8xf16>) -> tensor<8xf16>
  %5 = "migraphx.mul"(%4, %half) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %6 = "migraphx.add"(%half, %5) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %7 = "migraphx.mul"(%6, %x) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  return %7 : tensor<8xf16>
}

// -----

// The argument of tanh is another value: both may be infinite for different elements.
// CHECK-LABEL: @other
// CHECK-NOT: migraphx.exp
func.func @other(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %0 = "migraphx.tanh"(%y) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "migraphx.add"(%0, %one) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = "migraphx.mul"(%x, %half) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = "migraphx.mul"(%1, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// tanh is a result too: it would be computed beside the exponential.
// CHECK-LABEL: @used
// CHECK-NOT: migraphx.exp
func.func @used(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %half = "migraphx.literal"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %0 = "migraphx.tanh"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "migraphx.add"(%0, %one) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = "migraphx.mul"(%x, %half) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = "migraphx.mul"(%1, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %3, %0 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Not half of x.
// CHECK-LABEL: @whole
// CHECK-NOT: migraphx.exp
func.func @whole(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %0 = "migraphx.tanh"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "migraphx.add"(%0, %one) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = "migraphx.mul"(%1, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
