// RUN: mgx-opt %s --mgx-rewrite-dot --split-input-file | filecheck %s

// A bias and an activation run on the rows.
// CHECK-LABEL: @bias
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%{{.*}}) {{.*}}out_lens = array<i64: 6, 4>
// CHECK: %[[A:.*]] = "migraphx.add"(%arg0, %[[B]])
// CHECK: %[[R:.*]] = "migraphx.relu"(%[[A]]) : (tensor<6x4xf32>)
// CHECK: "migraphx.reshape"(%[[R]]) {dims = array<i64: 2, 3, 4>}
// CHECK-NEXT: return
func.func @bias(%x: tensor<6x4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 3, 4>} : (tensor<4xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = "migraphx.relu"(%2) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %3 : tensor<2x3x4xf32>
}

// -----

// Near misses: the reshape splits the last dim; the other operand repeats a middle dim.
// CHECK-LABEL: @heads
// CHECK-NEXT: migraphx.reshape
// CHECK-NEXT: migraphx.relu
func.func @heads(%x: tensor<6x4xf32>) -> tensor<6x2x2xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 6, 2, 2>} : (tensor<6x4xf32>) -> tensor<6x2x2xf32>
  %1 = "migraphx.relu"(%0) : (tensor<6x2x2xf32>) -> tensor<6x2x2xf32>
  return %1 : tensor<6x2x2xf32>
}

// -----

// CHECK-LABEL: @middle
// CHECK: "migraphx.add"({{.*}}) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>)
func.func @middle(%x: tensor<6x4xf32>, %b: tensor<2x1x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 3, 4>} : (tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}
