// RUN: mgx-opt %s --mgx-simplify-algebra=all-forms=true --split-input-file | filecheck %s

// CHECK-LABEL: @groups
// CHECK-DAG: %[[X:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 1
// CHECK-DAG: %[[W:.*]] = "migraphx.concat"(%arg2, %arg3) {axis = 0
// CHECK: %[[C:.*]] = "migraphx.convolution"(%[[X]], %[[W]]) {{.*}}group = 2
// CHECK-NEXT: return %[[C]]
func.func @groups(%x: tensor<1x2x2x2xf32>, %y: tensor<1x2x2x2xf32>, %u: tensor<3x2x1x1xf32>, %v: tensor<3x2x1x1xf32>) -> tensor<1x6x2x2xf32> {
  %0 = "migraphx.convolution"(%x, %u) : (tensor<1x2x2x2xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x2x2xf32>
  %1 = "migraphx.convolution"(%y, %v) : (tensor<1x2x2x2xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x2x2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>) -> tensor<1x6x2x2xf32>
  return %2 : tensor<1x6x2x2xf32>
}

// -----

// Near misses: another axis, other numbers of channels.
// CHECK-LABEL: @batch
// CHECK-COUNT-2: migraphx.convolution
// CHECK-NEXT: migraphx.concat
func.func @batch(%x: tensor<1x2x2x2xf32>, %y: tensor<1x2x2x2xf32>, %u: tensor<3x2x1x1xf32>, %v: tensor<3x2x1x1xf32>) -> tensor<2x3x2x2xf32> {
  %0 = "migraphx.convolution"(%x, %u) : (tensor<1x2x2x2xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x2x2xf32>
  %1 = "migraphx.convolution"(%y, %v) : (tensor<1x2x2x2xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x2x2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>) -> tensor<2x3x2x2xf32>
  return %2 : tensor<2x3x2x2xf32>
}

// -----

// CHECK-LABEL: @channels
// CHECK-COUNT-2: migraphx.convolution
// CHECK-NEXT: migraphx.concat
func.func @channels(%x: tensor<1x2x2x2xf32>, %y: tensor<1x2x2x2xf32>, %u: tensor<3x2x1x1xf32>, %v: tensor<1x2x1x1xf32>) -> tensor<1x4x2x2xf32> {
  %0 = "migraphx.convolution"(%x, %u) : (tensor<1x2x2x2xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x2x2xf32>
  %1 = "migraphx.convolution"(%y, %v) : (tensor<1x2x2x2xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x2x2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<1x3x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x2x2xf32>
  return %2 : tensor<1x4x2x2xf32>
}
