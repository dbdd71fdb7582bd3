// RUN: mgx-opt %s --mgx-fuse-pointwise --split-input-file | filecheck %s

// A chain is one kernel; the type may change on the way.
// CHECK-LABEL: @chain
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: "migraphx.add"
// CHECK-NEXT: "migraphx.relu"
// CHECK-NEXT: "migraphx.convert"
// CHECK-NEXT: "migraphx.yield"
// CHECK: return %[[K]]
func.func @chain(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %a = "migraphx.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "migraphx.relu"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.convert"(%b) {target_type = f16} : (tensor<2x3xf32>) -> tensor<2x3xf16>
  return %c : tensor<2x3xf16>
}

// -----

// Two that a third one joins.
// CHECK-LABEL: @joined
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK-NOT: migraphx.pointwise
// CHECK: return %[[K]]
func.func @joined(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = "migraphx.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "migraphx.relu"(%y) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.mul"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}

// -----

// Near misses. Another number of elements.
// CHECK-LABEL: @other_dims
// CHECK: %[[A:.*]] = "migraphx.pointwise"(%arg0)
// CHECK: %[[S:.*]] = "migraphx.slice"(%[[A]])
// CHECK: "migraphx.pointwise"(%[[S]])
func.func @other_dims(%x: tensor<2x3xf32>) -> tensor<1x3xf32> {
  %a = "migraphx.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = "migraphx.slice"(%a) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %c = "migraphx.relu"(%s) : (tensor<1x3xf32>) -> tensor<1x3xf32>
  return %c : tensor<1x3xf32>
}

// -----

// What lies between needs the first and is needed by the second.
// CHECK-LABEL: @cycle
// CHECK: %[[A:.*]] = "migraphx.pointwise"(%arg0)
// CHECK: %[[T:.*]] = "migraphx.softmax"(%[[A]])
// CHECK: "migraphx.pointwise"(%[[A]], %[[T]])
func.func @cycle(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = "migraphx.neg"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = "migraphx.softmax"(%a) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "migraphx.add"(%a, %s) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}
