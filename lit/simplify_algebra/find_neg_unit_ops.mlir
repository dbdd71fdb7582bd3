// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @times_minus_one
// CHECK-NEXT: %[[N:.*]] = "migraphx.neg"(%arg0)
// CHECK-NEXT: return %[[N]]
func.func @times_minus_one(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<-1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.mul"(%c, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @by_minus_one
// CHECK-NEXT: "migraphx.neg"(%arg0)
func.func @by_minus_one(%x: tensor<2xi8>) -> tensor<2xi8> {
  %c = "migraphx.literal"() {value = dense<-1> : tensor<2xi8>} : () -> tensor<2xi8>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  return %0 : tensor<2xi8>
}

// -----

// CHECK-LABEL: @zero_minus
// CHECK-NEXT: "migraphx.neg"(%arg0)
func.func @zero_minus(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.sub"(%c, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: unsigned types have no -1, -1 / x is something else.
// CHECK-LABEL: @unsigned
// CHECK: migraphx.mul
func.func @unsigned(%x: tensor<2xui8>) -> tensor<2xui8> {
  %c = "migraphx.literal"() {value = dense<255> : tensor<2xui8>} : () -> tensor<2xui8>
  %0 = "migraphx.mul"(%c, %x) : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  return %0 : tensor<2xui8>
}

// -----

// CHECK-LABEL: @minus_one_by
// CHECK: migraphx.div
func.func @minus_one_by(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<-1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%c, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
