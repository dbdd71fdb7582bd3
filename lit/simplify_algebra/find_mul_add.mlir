// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @distribute
// CHECK-DAG: %[[A:.*]] = "migraphx.literal"() {value = dense<[2.0{{.*}}, 3.0{{.*}}]>
// CHECK-DAG: %[[X:.*]] = "migraphx.mul"(%arg0, %[[A]])
// CHECK-DAG: %[[B:.*]] = "migraphx.mul"(%{{[0-9]+}}, %[[A]])
// CHECK: "migraphx.add"(%[[X]], %[[B]])
func.func @distribute(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<[5.0, 7.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%b, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%a, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Near misses: a sum of two inputs, a sum with other users.
// CHECK-LABEL: @no_constant
// CHECK: migraphx.add
// CHECK-NEXT: migraphx.mul
func.func @no_constant(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%y, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%a, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @two_users
// CHECK: %[[S:.*]] = "migraphx.add"
// CHECK-NEXT: "migraphx.mul"(%{{[0-9]+}}, %[[S]])
func.func @two_users(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%a, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%a, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
