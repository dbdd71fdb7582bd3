// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK: %[[R:.*]] = "migraphx.recip"
// CHECK: "migraphx.mul"(%arg0, %[[R]])
func.func @constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[4.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: integers, no constant.
// CHECK-LABEL: @integer
// CHECK: migraphx.div
func.func @integer(%x: tensor<2xi32>) -> tensor<2xi32> {
  %c = "migraphx.literal"() {value = dense<[4, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// CHECK-LABEL: @variable
// CHECK: migraphx.div
func.func @variable(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.div"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
