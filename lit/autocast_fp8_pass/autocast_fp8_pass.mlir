// RUN: mgx-opt %s --mgx-autocast-fp8-pass --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<4xf16>, %arg1: tensor<4xf32> {migraphx.name = "x"}) -> (tensor<4xf32>, tensor<4xf16>)
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg1) {target_type = f8E4M3FN}
// CHECK: %[[R:.*]] = "migraphx.relu"(%[[X]])
// CHECK: %[[Y:.*]] = "migraphx.convert"(%[[R]]) {target_type = f32}
// CHECK: return %[[Y]], %arg0
func.func @main(%x: tensor<4xf8E4M3FN> {migraphx.name = "x"}, %y: tensor<4xf16>) -> (tensor<4xf8E4M3FN>, tensor<4xf16>) {
  %0 = "migraphx.relu"(%x) : (tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
  return %0, %y : tensor<4xf8E4M3FN>, tensor<4xf16>
}

// -----

// Other types stay.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<4xf16>) -> tensor<4xf16>
// CHECK-NOT: migraphx.convert
func.func @main(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = "migraphx.relu"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

// Behind the others, the last first.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<2xf16> {migraphx.name = "b"}, %arg1: tensor<3xf32> {migraphx.name = "c"},
// CHECK-SAME: %arg2: tensor<1xf32> {migraphx.name = "a"})
// CHECK: %[[C:.*]] = "migraphx.convert"(%arg1)
// CHECK: %[[A:.*]] = "migraphx.convert"(%arg2)
func.func @main(%a: tensor<1xf8E5M2> {migraphx.name = "a"}, %b: tensor<2xf16> {migraphx.name = "b"}, %c: tensor<3xf8E4M3FN> {migraphx.name = "c"}) -> (tensor<1xf8E5M2>, tensor<3xf8E4M3FN>) {
  return %a, %c : tensor<1xf8E5M2>, tensor<3xf8E4M3FN>
}
