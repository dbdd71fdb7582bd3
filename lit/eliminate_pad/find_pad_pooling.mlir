// RUN: mgx-opt %s --mgx-eliminate-pad --split-input-file | filecheck %s

// CHECK-LABEL: @lowest
// CHECK-NEXT: "migraphx.pooling"(%arg0) {{.*}}padding = array<i64: 1, 1, 1, 0>
func.func @lowest(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x5x4xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 1, 0, 0, 1, 0>, value = 0xFFF0000000000000 : f64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x6x5xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x2x6x5xf32>) -> tensor<1x2x5x4xf32>
  return %1 : tensor<1x2x5x4xf32>
}

// -----

// Nothing after a relu is below 0.
// CHECK-LABEL: @zero_after_relu
// CHECK-NEXT: migraphx.relu
// CHECK-NEXT: "migraphx.pooling"(%{{.*}}) {{.*}}padding = array<i64: 1, 1, 1, 1>
func.func @zero_after_relu(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32> {
  %r = "migraphx.relu"(%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %0 = "migraphx.pad"(%r) {pads = array<i64: 0, 0, 1, 1, 0, 0, 1, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 3, 3>, stride = array<i64: 2, 2>} : (tensor<1x2x6x6xf32>) -> tensor<1x2x2x2xf32>
  return %1 : tensor<1x2x2x2xf32>
}

// -----

// Near misses: a border of 0 wins over negative values, an average counts it, a window would hold
// nothing else.
// CHECK-LABEL: @zero
// CHECK: migraphx.pad
func.func @zero(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x5x5xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 1, 0, 0, 1, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x2x6x6xf32>) -> tensor<1x2x5x5xf32>
  return %1 : tensor<1x2x5x5xf32>
}

// -----

// CHECK-LABEL: @average
// CHECK: migraphx.pad
func.func @average(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x5x5xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 1, 1, 0, 0, 1, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = "migraphx.pooling"(%0) {mode = "average", lengths = array<i64: 2, 2>} : (tensor<1x2x6x6xf32>) -> tensor<1x2x5x5xf32>
  return %1 : tensor<1x2x5x5xf32>
}

// -----

// CHECK-LABEL: @padding_alone
// CHECK: migraphx.pad
func.func @padding_alone(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x7x7xf32> {
  %0 = "migraphx.pad"(%x) {pads = array<i64: 0, 0, 2, 2, 0, 0, 2, 2>, value = 0xFFF0000000000000 : f64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x8x8xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x7x7xf32>
  return %1 : tensor<1x2x7x7xf32>
}
