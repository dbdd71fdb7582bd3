// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @distribute
// CHECK-DAG: %[[A:.*]] = "migraphx.literal"() {value = dense<[2.0{{.*}}, 3.0{{.*}}]>
// CHECK-DAG: %[[T:.*]] = "migraphx.tanh"(%arg0)
// CHECK-DAG: %[[X:.*]] = "migraphx.mul"(%[[T]], %[[A]])
// CHECK-DAG: %[[B:.*]] = "migraphx.mul"(%{{[0-9]+}}, %[[A]])
// CHECK: "migraphx.add"(%[[X]], %[[B]])
func.func @distribute(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<[5.0, 7.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %t = "migraphx.tanh"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %0 = "migraphx.add"(%b, %t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
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
func.func @two_users(%y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %x = "migraphx.tanh"(%y) : (tensor<2xf32>) -> tensor<2xf32>
  %a = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%a, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%a, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// An input may be close to what is subtracted from it: the difference is exact, the products are not.
// CHECK-LABEL: @exact
// CHECK: %[[S:.*]] = "migraphx.add"(%arg0
// CHECK-NEXT: migraphx.mul
// CHECK-NEXT: return
func.func @exact(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<[0.001, 0.003]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<[-1.7e9, 7.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%0, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Twice an input is as exact as the input, seen through a view and a conversion too.
// CHECK-LABEL: @doubled
// CHECK: migraphx.add
// CHECK-NEXT: migraphx.mul
// CHECK-NEXT: return
func.func @doubled(%x: tensor<2xf16>) -> tensor<2x1xf32> {
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %two = "migraphx.literal"() {value = dense<2.0> : tensor<2xf16>} : () -> tensor<2xf16>
  %d = "migraphx.mul"(%x, %two) : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
  %r = "migraphx.reshape"(%d) {dims = array<i64: 2, 1>} : (tensor<2xf16>) -> tensor<2x1xf16>
  %w = "migraphx.convert"(%r) {target_type = f32} : (tensor<2x1xf16>) -> tensor<2x1xf32>
  %0 = "migraphx.add"(%w, %a) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %1 = "migraphx.mul"(%0, %a) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  return %1 : tensor<2x1xf32>
}

// -----

// What Floor makes of it depends on the last bit.
// CHECK-LABEL: @steps
// CHECK: migraphx.add
// CHECK-NEXT: migraphx.mul
// CHECK-NEXT: migraphx.floor
func.func @steps(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<3.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %t = "migraphx.tanh"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %0 = "migraphx.add"(%t, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%0, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.floor"(%1) : (tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
