// RUN: mgx-opt %s --mgx-rewrite-convolution --split-input-file | filecheck %s

// Four phases of two by two taps; what is left of the border is cut off.
// CHECK-LABEL: @strided
// CHECK-DAG: %[[W:.*]] = "migraphx.literal"() {{.*}} -> tensor<2x2x3x20xf32>
// CHECK-DAG: %[[X:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK: %[[C:.*]] = "migraphx.convolution"(%[[X]], %[[W]]) {channels_last = true, {{.*}}padding = array<i64: 1, 1, 1, 1>, {{.*}} -> tensor<1x9x7x20xf32>
// CHECK: %[[R:.*]] = "migraphx.reshape"(%[[C]]) {{.*}} -> tensor<1x9x7x1x2x2x5xf32>
// CHECK: %[[T:.*]] = "migraphx.transpose"(%[[R]]) {permutation = array<i64: 0, 1, 4, 2, 5, 3, 6>}
// CHECK: %[[F:.*]] = "migraphx.reshape"(%[[T]]) {{.*}} -> tensor<1x18x14x5xf32>
// CHECK: %[[A:.*]] = "migraphx.slice"(%[[F]]) {{.*}} -> tensor<1x16x14x5xf32>
// CHECK: %[[B:.*]] = "migraphx.slice"(%[[A]]) {{.*}} -> tensor<1x16x12x5xf32>
// CHECK: "migraphx.transpose"(%[[B]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @strided(%x: tensor<1x3x8x6xf32>) -> tensor<1x5x16x12xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x5x4x4xf32>} : () -> tensor<3x5x4x4xf32>
  %0 = "migraphx.convolution_backwards"(%x, %w) {padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<1x3x8x6xf32>, tensor<3x5x4x4xf32>) -> tensor<1x5x16x12xf32>
  return %0 : tensor<1x5x16x12xf32>
}

// -----

// Without strides it is a convolution with its taps in the other order.
// CHECK-LABEL: @plain
// CHECK: "migraphx.convolution"{{.*}}dilation = array<i64: 2>{{.*}}padding = array<i64: 3, 2>
// CHECK-NOT: migraphx.reshape
// CHECK-NOT: migraphx.slice
func.func @plain(%x: tensor<2x3x9xf32>) -> tensor<2x4x10xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x4x3xf32>} : () -> tensor<3x4x3xf32>
  %0 = "migraphx.convolution_backwards"(%x, %w) {padding = array<i64: 1, 2>, stride = array<i64: 1>, dilation = array<i64: 2>} : (tensor<2x3x9xf32>, tensor<3x4x3xf32>) -> tensor<2x4x10xf32>
  return %0 : tensor<2x4x10xf32>
}

// -----

// Weights that are an argument; strides and dilations.
// CHECK-LABEL: @kept
// CHECK-COUNT-2: migraphx.convolution_backwards
func.func @kept(%x: tensor<1x3x5xf32>, %v: tensor<3x2x2xf32>) -> (tensor<1x2x10xf32>, tensor<1x2x11xf32>) {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<3x2x2xf32>} : () -> tensor<3x2x2xf32>
  %0 = "migraphx.convolution_backwards"(%x, %v) {padding = array<i64: 0>, stride = array<i64: 2>, dilation = array<i64: 1>} : (tensor<1x3x5xf32>, tensor<3x2x2xf32>) -> tensor<1x2x10xf32>
  %1 = "migraphx.convolution_backwards"(%x, %w) {padding = array<i64: 0>, stride = array<i64: 2>, dilation = array<i64: 2>} : (tensor<1x3x5xf32>, tensor<3x2x2xf32>) -> tensor<1x2x11xf32>
  return %0, %1 : tensor<1x2x10xf32>, tensor<1x2x11xf32>
}
