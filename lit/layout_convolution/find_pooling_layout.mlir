// RUN: mgx-opt %s --mgx-layout-convolution --split-input-file | filecheck %s

// CHECK-LABEL: @max
// CHECK-NEXT: %[[Y:.*]] = "migraphx.pooling"(%arg0) {ceil_mode = true, channels_last = true, count_include_pad = false, dilations = array<i64: 1, 1>, dyn_global = false, lengths = array<i64: 3, 2>, lp_order = 2 : i64, mode = "max", padding = array<i64: 1, 0>, padding_mode = "default_", stride = array<i64: 2, 1>} : (tensor<1x8x6x4xf32>) -> tensor<1x5x5x4xf32>
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @max(%x: tensor<1x8x6x4xf32>) -> tensor<1x4x5x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x6x4xf32>) -> tensor<1x4x8x6xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 1, 0>, ceil_mode = true} : (tensor<1x4x8x6xf32>) -> tensor<1x4x5x5xf32>
  return %1 : tensor<1x4x5x5xf32>
}

// -----

// CHECK-LABEL: @average
// CHECK-NEXT: "migraphx.pooling"(%arg0) {{.*}}count_include_pad = true{{.*}}mode = "average"{{.*}} : (tensor<?x6x4xf32>) -> tensor<?x7x4xf32>
func.func @average(%x: tensor<?x6x4xf32>) -> tensor<?x4x7xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<?x6x4xf32>) -> tensor<?x4x6xf32>
  %1 = "migraphx.pooling"(%0) {mode = "average", lengths = array<i64: 2>, stride = array<i64: 1>, padding = array<i64: 1, 1>, dilations = array<i64: 1>, count_include_pad = true} : (tensor<?x4x6xf32>) -> tensor<?x4x7xf32>
  return %1 : tensor<?x4x7xf32>
}

// -----

// Near misses: another transpose, none.
// CHECK-LABEL: @other_order
// CHECK: "migraphx.pooling"({{.*}} : (tensor<1x4x8x6xf32>)
func.func @other_order(%x: tensor<1x6x8x4xf32>) -> tensor<1x4x7x5xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 2, 1>} : (tensor<1x6x8x4xf32>) -> tensor<1x4x8x6xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x4x8x6xf32>) -> tensor<1x4x7x5xf32>
  return %1 : tensor<1x4x7x5xf32>
}

// -----

// CHECK-LABEL: @plain
// CHECK-NEXT: "migraphx.pooling"(%arg0) {{.*}} : (tensor<1x4x8x6xf32>)
func.func @plain(%x: tensor<1x4x8x6xf32>) -> tensor<1x4x7x5xf32> {
  %1 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 2, 2>} : (tensor<1x4x8x6xf32>) -> tensor<1x4x7x5xf32>
  return %1 : tensor<1x4x7x5xf32>
}
