// RUN: mgx-opt %s --mgx-layout-convolution="groups=true" --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s --check-prefix=OFF

// OFF-LABEL: @joined
// OFF: "migraphx.reshape"{{.*}} -> tensor<2x3x40xf32>
// CHECK-LABEL: @joined
// CHECK-NEXT: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: 2, 4, 5, 3, 2>}
// CHECK-NEXT: %[[M:.*]] = "migraphx.reduce_mean"(%[[X]]) {axes = array<i64: 1, 2, 4>} : (tensor<2x4x5x3x2xf32>) -> tensor<2x1x1x3x1xf32>
// CHECK-NEXT: %[[R:.*]] = "migraphx.multibroadcast"(%[[M]]) {{.*}} -> tensor<2x4x5x3x2xf32>
// CHECK-NEXT: %[[Y:.*]] = "migraphx.sub"(%[[X]], %[[R]])
// CHECK-NEXT: %[[Z:.*]] = "migraphx.reshape"(%[[Y]]) {dims = array<i64: 2, 4, 5, 6>}
// CHECK-NEXT: "migraphx.transpose"(%[[Z]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @joined(%x: tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 3, 40>} : (tensor<2x6x4x5xf32>) -> tensor<2x3x40xf32>
  %2 = "migraphx.reduce_mean"(%1) {axes = array<i64: 2>} : (tensor<2x3x40xf32>) -> tensor<2x3x1xf32>
  %3 = "migraphx.multibroadcast"(%2) {out_lens = array<i64: 2, 3, 40>} : (tensor<2x3x1xf32>) -> tensor<2x3x40xf32>
  %4 = "migraphx.sub"(%1, %3) : (tensor<2x3x40xf32>, tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  %5 = "migraphx.reshape"(%4) {dims = array<i64: 2, 6, 4, 5>} : (tensor<2x3x40xf32>) -> tensor<2x6x4x5xf32>
  return %5 : tensor<2x6x4x5xf32>
}

// -----

// A number for each channel, in the dims of groups.
// CHECK-LABEL: @scaled
// CHECK: %[[S:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: 1, 1, 3, 2>}
// CHECK-NEXT: %[[R:.*]] = "migraphx.multibroadcast"(%[[S]]) {{.*}} -> tensor<2x4x3x2xf32>
// CHECK-NEXT: "migraphx.mul"({{.*}}, %[[R]])
// CHECK: "migraphx.transpose"({{.*}}) {permutation = array<i64: 0, 2, 1>}
func.func @scaled(%x: tensor<2x4x6xf32>, %s: tensor<1x3x2x1xf32>) -> tensor<2x6x4xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x6xf32>) -> tensor<2x6x4xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 3, 2, 4>} : (tensor<2x6x4xf32>) -> tensor<2x3x2x4xf32>
  %2 = "migraphx.reduce_max"(%1) {axes = array<i64: 2, 3>} : (tensor<2x3x2x4xf32>) -> tensor<2x3x1x1xf32>
  %3 = "migraphx.multibroadcast"(%2) {out_lens = array<i64: 2, 3, 2, 4>} : (tensor<2x3x1x1xf32>) -> tensor<2x3x2x4xf32>
  %4 = "migraphx.sub"(%1, %3) : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  %5 = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3, 2, 4>} : (tensor<1x3x2x1xf32>) -> tensor<2x3x2x4xf32>
  %6 = "migraphx.mul"(%4, %5) : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  %7 = "migraphx.reshape"(%6) {dims = array<i64: 2, 6, 4>} : (tensor<2x3x2x4xf32>) -> tensor<2x6x4xf32>
  return %7 : tensor<2x6x4xf32>
}

// -----

// Near misses: another value of each element, a reduction over the groups too, no reduction.
// CHECK-LABEL: @another
// CHECK: migraphx.transpose
// CHECK-NEXT: "migraphx.reshape"{{.*}} -> tensor<2x3x40xf32>
func.func @another(%x: tensor<2x4x5x6xf32>, %y: tensor<2x3x40xf32>) -> tensor<2x6x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 3, 40>} : (tensor<2x6x4x5xf32>) -> tensor<2x3x40xf32>
  %2 = "migraphx.reduce_mean"(%1) {axes = array<i64: 2>} : (tensor<2x3x40xf32>) -> tensor<2x3x1xf32>
  %3 = "migraphx.multibroadcast"(%2) {out_lens = array<i64: 2, 3, 40>} : (tensor<2x3x1xf32>) -> tensor<2x3x40xf32>
  %4 = "migraphx.sub"(%y, %3) : (tensor<2x3x40xf32>, tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  %5 = "migraphx.reshape"(%4) {dims = array<i64: 2, 6, 4, 5>} : (tensor<2x3x40xf32>) -> tensor<2x6x4x5xf32>
  return %5 : tensor<2x6x4x5xf32>
}

// -----

// CHECK-LABEL: @other_axes
// CHECK: migraphx.transpose
// CHECK-NEXT: "migraphx.reshape"{{.*}} -> tensor<2x3x40xf32>
func.func @other_axes(%x: tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 3, 40>} : (tensor<2x6x4x5xf32>) -> tensor<2x3x40xf32>
  %2 = "migraphx.reduce_mean"(%1) {axes = array<i64: 1, 2>} : (tensor<2x3x40xf32>) -> tensor<2x1x1xf32>
  %3 = "migraphx.multibroadcast"(%2) {out_lens = array<i64: 2, 3, 40>} : (tensor<2x1x1xf32>) -> tensor<2x3x40xf32>
  %4 = "migraphx.sub"(%1, %3) : (tensor<2x3x40xf32>, tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  %5 = "migraphx.reshape"(%4) {dims = array<i64: 2, 6, 4, 5>} : (tensor<2x3x40xf32>) -> tensor<2x6x4x5xf32>
  return %5 : tensor<2x6x4x5xf32>
}

// -----

// CHECK-LABEL: @no_norm
// CHECK: migraphx.transpose
// CHECK-NEXT: "migraphx.reshape"{{.*}} -> tensor<2x3x40xf32>
func.func @no_norm(%x: tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 2, 3, 40>} : (tensor<2x6x4x5xf32>) -> tensor<2x3x40xf32>
  %2 = "migraphx.relu"(%1) : (tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  %3 = "migraphx.reshape"(%2) {dims = array<i64: 2, 6, 4, 5>} : (tensor<2x3x40xf32>) -> tensor<2x6x4x5xf32>
  return %3 : tensor<2x6x4x5xf32>
}
