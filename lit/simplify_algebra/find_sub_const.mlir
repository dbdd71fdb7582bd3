// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK: %[[C:.*]] = "migraphx.literal"
// CHECK: %[[N:.*]] = "migraphx.neg"(%[[C]])
// CHECK: "migraphx.add"(%arg0, %[[N]])
func.func @constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.sub"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: not a constant, the constant first, unsigned.
// CHECK-LABEL: @variable
// CHECK: migraphx.sub
func.func @variable(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.sub"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @first
// CHECK: migraphx.sub
func.func @first(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.sub"(%c, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @unsigned
// CHECK: migraphx.sub
func.func @unsigned(%x: tensor<2xui8>) -> tensor<2xui8> {
  %c = "migraphx.literal"() {value = dense<[1, 2]> : tensor<2xui8>} : () -> tensor<2xui8>
  %0 = "migraphx.sub"(%x, %c) : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  return %0 : tensor<2xui8>
}
