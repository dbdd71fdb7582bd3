// RUN: mgx-opt %s --mgx-capture-arguments --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-capture-arguments=ops=relu --split-input-file | filecheck %s --check-prefix=RELU

// CHECK-LABEL: @floats
// CHECK: %[[X:.*]] = "migraphx.capture"(%arg0) {ins_index = 0 : i64}
// CHECK: %[[W:.*]] = "migraphx.capture"(%arg1) {ins_index = 1 : i64}
// CHECK: %[[D:.*]] = "migraphx.dot"(%[[X]], %[[W]])
// CHECK: "migraphx.relu"(%[[D]])
// CHECK: %[[Y:.*]] = "migraphx.capture"(%arg0) {ins_index = 2 : i64}
// CHECK: "migraphx.dot"(%[[Y]]
// RELU-LABEL: @floats
// RELU: %[[D:.*]] = "migraphx.dot"(%arg0, %arg1)
// RELU: %[[C:.*]] = "migraphx.capture"(%[[D]]) {ins_index = 0 : i64}
// RELU: "migraphx.relu"(%[[C]])
func.func @floats(%x: tensor<2x2xf32>, %w: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.relu"(%0) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = "migraphx.dot"(%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1, %2 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// Integers need no scale.
// CHECK-LABEL: @integers
// CHECK-NOT: migraphx.capture
func.func @integers(%x: tensor<2x2xi32>) -> tensor<2x2xi32> {
  %0 = "migraphx.dot"(%x, %x) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  return %0 : tensor<2x2xi32>
}
