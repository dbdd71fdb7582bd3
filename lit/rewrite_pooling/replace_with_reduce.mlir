// RUN: mgx-opt %s --mgx-rewrite-pooling --split-input-file | filecheck %s

// CHECK-LABEL: @average
// CHECK-NEXT: "migraphx.reduce_mean"(%arg0) {axes = array<i64: 2, 3>}
func.func @average(%x: tensor<1x2x4x5xf32>) -> tensor<1x2x1x1xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 4, 5>} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x1xf32>
  return %0 : tensor<1x2x1x1xf32>
}

// -----

// CHECK-LABEL: @max
// CHECK-NEXT: "migraphx.reduce_max"(%arg0) {axes = array<i64: 2>}
func.func @max(%x: tensor<1x2x4xf32>) -> tensor<1x2x1xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 4>, stride = array<i64: 3>, padding = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x1xf32>
  return %0 : tensor<1x2x1xf32>
}

// -----

// CHECK-LABEL: @channels_last
// CHECK-NEXT: "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1, 2>}
func.func @channels_last(%x: tensor<1x4x5x2xf32>) -> tensor<1x1x1x2xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 4, 5>, channels_last = true} : (tensor<1x4x5x2xf32>) -> tensor<1x1x1x2xf32>
  return %0 : tensor<1x1x1x2xf32>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK-NEXT: "migraphx.reduce_mean"(%arg0) {axes = array<i64: 2, 3>}
func.func @dynamic(%x: tensor<1x2x?x?xf32>) -> tensor<1x2x1x1xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", dyn_global = true} : (tensor<1x2x?x?xf32>) -> tensor<1x2x1x1xf32>
  return %0 : tensor<1x2x1x1xf32>
}

// -----

// Near misses: padding, a smaller window, a norm, integers.
// CHECK-LABEL: @padding
// CHECK-NEXT: migraphx.pooling
func.func @padding(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 4, 4>, padding = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
  return %0 : tensor<1x2x3x3xf32>
}

// -----

// CHECK-LABEL: @smaller
// CHECK-NEXT: migraphx.pooling
func.func @smaller(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 3, 3>, stride = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32>
  return %0 : tensor<1x2x1x1xf32>
}

// -----

// CHECK-LABEL: @norm
// CHECK-NEXT: migraphx.pooling
func.func @norm(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "lpnorm", lengths = array<i64: 4, 4>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32>
  return %0 : tensor<1x2x1x1xf32>
}

// -----

// CHECK-LABEL: @integer
// CHECK-NEXT: migraphx.pooling
func.func @integer(%x: tensor<1x2x4x4xi32>) -> tensor<1x2x1x1xi32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 4, 4>} : (tensor<1x2x4x4xi32>) -> tensor<1x2x1x1xi32>
  return %0 : tensor<1x2x1x1xi32>
}
