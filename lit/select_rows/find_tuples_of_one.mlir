// RUN: mgx-opt %s --mgx-select-rows --split-input-file | filecheck %s

// CHECK-LABEL: @tuples_of_one
// CHECK: %[[I:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 2, 3>}
// CHECK: "migraphx.gather"(%arg0, %[[I]]) {axis = 0 : i64} : (tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
func.func @tuples_of_one(%x: tensor<5x4xf32>, %i: tensor<2x3x1xi64>) -> tensor<2x3x4xf32> {
  %y = "migraphx.gathernd"(%x, %i) {batch_dims = 0 : i64} : (tensor<5x4xf32>, tensor<2x3x1xi64>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @tuples_of_two
// CHECK-NEXT: "migraphx.gathernd"
func.func @tuples_of_two(%x: tensor<5x4xf32>, %i: tensor<3x2xi64>) -> tensor<3xf32> {
  %y = "migraphx.gathernd"(%x, %i) {batch_dims = 0 : i64} : (tensor<5x4xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
