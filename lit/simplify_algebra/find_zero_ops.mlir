// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-simplify-algebra=fast-math --split-input-file | filecheck %s --check-prefix=FAST

// CHECK-LABEL: @times_zero
// CHECK-NEXT: %[[Z:.*]] = "migraphx.literal"
// CHECK-NEXT: return %[[Z]]
func.func @times_zero(%x: tensor<2xi32>) -> tensor<2xi32> {
  %c = "migraphx.literal"() {value = dense<0> : tensor<2xi32>} : () -> tensor<2xi32>
  %0 = "migraphx.mul"(%x, %c) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// Near misses: infinity times 0 is NaN, x / 0 is not 0.
// CHECK-LABEL: @float
// CHECK: migraphx.mul
// FAST-LABEL: @float
// FAST-NOT: migraphx.mul
// FAST: return
func.func @float(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.mul"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// FAST-LABEL: @by_zero
// FAST: return %{{[0-9]+}}
func.func @by_zero(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
