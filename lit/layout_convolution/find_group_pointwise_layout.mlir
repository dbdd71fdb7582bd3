// RUN: mgx-opt %s --mgx-layout-convolution="groups=true" --split-input-file | filecheck %s

// CHECK-LABEL: @activation
// CHECK: %[[Y:.*]] = "migraphx.sub"
// CHECK-NEXT: %[[S:.*]] = "migraphx.sigmoid"(%[[Y]]) : (tensor<2x4x3x2xf32>)
// CHECK-NEXT: %[[M:.*]] = "migraphx.mul"(%[[Y]], %[[S]])
// CHECK-NEXT: %[[B:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 1, 1, 3, 2>}
// CHECK-NEXT: %[[R:.*]] = "migraphx.multibroadcast"(%[[B]])
// CHECK-NEXT: %[[A:.*]] = "migraphx.add"(%[[M]], %[[R]])
// CHECK-NEXT: "migraphx.reshape"(%[[A]]) {dims = array<i64: 2, 4, 6>}
func.func @activation(%x: tensor<2x4x3x2xf32>, %b: tensor<6xf32>) -> tensor<2x4x6xf32> {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 1, 3>} : (tensor<2x4x3x2xf32>) -> tensor<2x1x3x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 2, 4, 3, 2>} : (tensor<2x1x3x1xf32>) -> tensor<2x4x3x2xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x2xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 2, 4, 6>} : (tensor<2x4x3x2xf32>) -> tensor<2x4x6xf32>
  %4 = "migraphx.sigmoid"(%3) : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %5 = "migraphx.mul"(%3, %4) : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %6 = "migraphx.broadcast"(%b) {axis = 2 : i64, out_lens = array<i64: 2, 4, 6>} : (tensor<6xf32>) -> tensor<2x4x6xf32>
  %7 = "migraphx.add"(%5, %6) : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  return %7 : tensor<2x4x6xf32>
}

// -----

// Near misses: another operand of each element, a norm over the groups too.
// CHECK-LABEL: @another
// CHECK: migraphx.reshape
// CHECK-NEXT: "migraphx.add"({{.*}}) : (tensor<2x4x6xf32>
func.func @another(%x: tensor<2x4x3x2xf32>, %b: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 1, 3>} : (tensor<2x4x3x2xf32>) -> tensor<2x1x3x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 2, 4, 3, 2>} : (tensor<2x1x3x1xf32>) -> tensor<2x4x3x2xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x2xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 2, 4, 6>} : (tensor<2x4x3x2xf32>) -> tensor<2x4x6xf32>
  %4 = "migraphx.add"(%3, %b) : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  return %4 : tensor<2x4x6xf32>
}

// -----

// CHECK-LABEL: @all_channels
// CHECK: migraphx.reshape
// CHECK-NEXT: "migraphx.relu"({{.*}}) : (tensor<2x4x6xf32>)
func.func @all_channels(%x: tensor<2x4x3x2xf32>) -> tensor<2x4x6xf32> {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 2, 3>} : (tensor<2x4x3x2xf32>) -> tensor<2x4x1x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 2, 4, 3, 2>} : (tensor<2x4x1x1xf32>) -> tensor<2x4x3x2xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x2xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 2, 4, 6>} : (tensor<2x4x3x2xf32>) -> tensor<2x4x6xf32>
  %4 = "migraphx.relu"(%3) : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  return %4 : tensor<2x4x6xf32>
}
