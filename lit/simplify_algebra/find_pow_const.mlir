// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @cube
// CHECK-NEXT: %[[S:.*]] = "migraphx.mul"(%arg0, %arg0)
// CHECK-NEXT: "migraphx.mul"(%[[S]], %arg0)
func.func @cube(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<3.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @fourth
// CHECK-NEXT: %[[S:.*]] = "migraphx.mul"(%arg0, %arg0)
// CHECK-NEXT: "migraphx.mul"(%[[S]], %[[S]])
func.func @fourth(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<4.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @first
// CHECK-NEXT: return %arg0
func.func @first(%x: tensor<2xi32>) -> tensor<2xi32> {
  %c = "migraphx.literal"() {value = dense<1> : tensor<2xi32>} : () -> tensor<2xi32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// CHECK-LABEL: @minus_first
// CHECK-NEXT: "migraphx.recip"(%arg0)
func.func @minus_first(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<-1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: an exponent without a short product, two exponents.
// CHECK-LABEL: @fifth
// CHECK: migraphx.pow
func.func @fifth(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<5.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @mixed
// CHECK: migraphx.pow
func.func @mixed(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.pow"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
