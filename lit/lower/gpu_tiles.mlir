// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx1100' --split-input-file | filecheck %s

// A filter for each channel takes one element of the window at a time, of one axis, too.
// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %{{.*}} : tensor<1x14x48xf32>, tensor<4x48xf32>)
// CHECK-SAME: reduction = [0, 0, 0, 1], thread = [1, 1, 2, 0], workgroup = [1, 1, 48, 0]
func.func @depthwise_one_axis(%x: tensor<1x14x48xf32>, %w: tensor<4x1x48xf32>) -> tensor<1x11x48xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0>, stride = array<i64: 1>, dilation = array<i64: 1>, group = 48 : i64, channels_last = true} : (tensor<1x14x48xf32>, tensor<4x1x48xf32>) -> tensor<1x11x48xf32>
  return %0 : tensor<1x11x48xf32>
}

// -----

// So do several filters for each.
// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x3x3x4x2xf32>)
// CHECK-SAME: reduction = [0, 0, 0, 0, 0, 1, 1, 1], thread = [1, 1, 1, 1, 1, 0, 0, 0], workgroup = [1, 1, 1, 4, 2, 0, 0, 0]
func.func @filters_of_one_channel(%x: tensor<1x5x5x4xf32>, %w: tensor<3x3x1x8xf32>) -> tensor<1x3x3x8xf32> {
  %0 = "migraphx.convolution"(%x, %w) {group = 4 : i64, channels_last = true} : (tensor<1x5x5x4xf32>, tensor<3x3x1x8xf32>) -> tensor<1x3x3x8xf32>
  return %0 : tensor<1x3x3x8xf32>
}

// -----

// So do groups whose channels no matrix instruction divides.
// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x3x3x2x3xf32>)
// CHECK-SAME: reduction = [0, 0, 0, 0, 0, 1, 1, 1], thread = [1, 1, 1, 1, 1, 0, 0, 0], workgroup = [1, 1, 1, 2, 3, 0, 0, 0]
func.func @groups(%x: tensor<1x5x5x4xf32>, %w: tensor<3x3x2x6xf32>) -> tensor<1x3x3x6xf32> {
  %0 = "migraphx.convolution"(%x, %w) {group = 2 : i64, channels_last = true} : (tensor<1x5x5x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x3x3x6xf32>
  return %0 : tensor<1x3x3x6xf32>
}

// -----

// Few rows that no matrix instruction multiplies have threads' tiles.
// CHECK-LABEL: @main(
// CHECK: linalg.matmul {{.*}}promote_operands = [0, 1], reduction = [0, 0, 32], thread = [1, 2, 0], workgroup = [6, 32, 0]
func.func @few_rows(%x: tensor<6x48xf32>, %w: tensor<48x24xf32>) -> tensor<6x24xf32> {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<6x48xf32>, %b: tensor<48x24xf32>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<6x48xf32>, tensor<48x24xf32>) -> tensor<6x24xf32>
    "migraphx.yield"(%1) : (tensor<6x24xf32>) -> ()
  }) {tag = "dot"} : (tensor<6x48xf32>, tensor<48x24xf32>) -> tensor<6x24xf32>
  return %0 : tensor<6x24xf32>
}
