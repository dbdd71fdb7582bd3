// RUN: mgx-opt %s --mgx-fp-to-double --split-input-file | filecheck %s

// Results are carried on in f64, through conversions too; arguments and results keep their types.
// CHECK-LABEL: @chain
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg0) {target_type = f64}
// CHECK: %[[S:.*]] = "migraphx.sigmoid"(%[[X]]) : (tensor<4xf64>) -> tensor<4xf64>
// CHECK: %[[Y:.*]] = "migraphx.convert"(%arg1) {target_type = f64}
// CHECK: %[[A:.*]] = "migraphx.add"(%[[S]], %[[Y]])
// CHECK: %[[R:.*]] = "migraphx.convert"(%[[A]]) {target_type = f32}
// CHECK-NEXT: return %[[R]]
func.func @chain(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {
  %0 = "migraphx.sigmoid"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "migraphx.convert"(%0) {target_type = f64} : (tensor<4xf32>) -> tensor<4xf64>
  %2 = "migraphx.convert"(%1) {target_type = f32} : (tensor<4xf64>) -> tensor<4xf32>
  %3 = "migraphx.convert"(%y) {target_type = f32} : (tensor<4xi32>) -> tensor<4xf32>
  %4 = "migraphx.add"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// Integers stay.
// CHECK-LABEL: @integers
// CHECK-NOT: f64
func.func @integers(%x: tensor<4xi32>, %y: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = "migraphx.neg"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  %1 = "migraphx.convert"(%y) {target_type = i32} : (tensor<4xf32>) -> tensor<4xi32>
  return %0, %1 : tensor<4xi32>, tensor<4xi32>
}
