// RUN: mgx-opt %s --mgx-rewrite-reduce=wide-values=true --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-reduce --split-input-file | filecheck %s --check-prefix=NARROW

// CHECK-LABEL: @values
// CHECK: %[[P:.*]] = "migraphx.softmax"(%arg0)
// CHECK: %[[V:.*]] = "migraphx.convert"(%arg1) {target_type = f32}
// CHECK: %[[Y:.*]] = "migraphx.dot"(%[[P]], %[[V]]) : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
// CHECK: "migraphx.convert"(%[[Y]]) {target_type = f16}
// NARROW-LABEL: @values
// NARROW: "migraphx.dot"{{.*}} -> tensor<4x8xf16>
func.func @values(%s: tensor<4x6xf32>, %v: tensor<6x8xf16>) -> tensor<4x8xf16> {
  %0 = "migraphx.softmax"(%s) {axis = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "migraphx.convert"(%0) {target_type = f16} : (tensor<4x6xf32>) -> tensor<4x6xf16>
  %2 = "migraphx.dot"(%1, %v) : (tensor<4x6xf16>, tensor<6x8xf16>) -> tensor<4x8xf16>
  return %2 : tensor<4x8xf16>
}

// -----

// Not a softmax.
// CHECK-LABEL: @other
// CHECK: "migraphx.dot"{{.*}} -> tensor<4x8xf16>
func.func @other(%s: tensor<4x6xf32>, %v: tensor<6x8xf16>) -> tensor<4x8xf16> {
  %1 = "migraphx.convert"(%s) {target_type = f16} : (tensor<4x6xf32>) -> tensor<4x6xf16>
  %2 = "migraphx.dot"(%1, %v) : (tensor<4x6xf16>, tensor<6x8xf16>) -> tensor<4x8xf16>
  return %2 : tensor<4x8xf16>
}
