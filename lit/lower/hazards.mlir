// The forms that docs/iree-hazards.md asks for, by the numbers of its entries.
// RUN: mgx-opt %s --mgx-lower-to-linalg=vector-kernels=false --split-input-file | filecheck %s

// Hazard 1: a pad of what the kernel computes is in no region.
// CHECK-LABEL: @main(
// CHECK-NOT: flow.dispatch.region
// CHECK: arith.maximumf
// CHECK: tensor.pad
// CHECK: %[[C:.*]] = linalg.conv_2d_nhwc_hwcf
// CHECK: "util.optimization_barrier"(%[[C]])
func.func @pad_of_a_computed_value(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32> {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<1x8x8x4xf32>, %b: tensor<3x3x4x8xf32>):
    %1 = "migraphx.relu"(%a) : (tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32>
    %2 = "migraphx.convolution"(%1, %b) {channels_last = true, padding = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32>
    "migraphx.yield"(%2) : (tensor<1x8x8x8xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}

// -----

// A pad of what the kernel is given is in its region.
// CHECK-LABEL: @main(
// CHECK: flow.dispatch.region
// CHECK: tensor.pad %arg0
func.func @pad_of_an_operand(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32> {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<1x8x8x4xf32>, %b: tensor<3x3x4x8xf32>):
    %1 = "migraphx.convolution"(%a, %b) {channels_last = true, padding = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32>
    "migraphx.yield"(%1) : (tensor<1x8x8x8xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}

// -----

// Hazard 10: an axis with one window is cut to what the window reads, one with several is not.
// CHECK-LABEL: @main(
// CHECK: %[[S:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 2, 3, 9] [1, 1, 1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[S]], %{{.*}} : tensor<1x2x3x9xf32>
func.func @one_window(%x: tensor<1x2x7x9xf32>) -> tensor<1x2x1x3xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 3, 3>, stride = array<i64: 5, 3>} : (tensor<1x2x7x9xf32>) -> tensor<1x2x1x3xf32>
  return %0 : tensor<1x2x1x3xf32>
}

// -----

// Hazard 11: the results of a kernel in no region stand behind a barrier.
// CHECK-LABEL: @main(
// CHECK-NOT: flow.dispatch.region
// CHECK: %[[R:.*]] = tensor.expand_shape
// CHECK: %[[B:.*]] = "util.optimization_barrier"(%[[R]])
// CHECK: %[[T:.*]] = "flow.tensor.tie_shape"(%[[B]]
// CHECK: return %[[T]]
func.func @no_region(%x: tensor<?x6xf32>) -> tensor<?x1xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<?x6xf32>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<?x6xf32>) -> tensor<?x1xf32>
    "migraphx.yield"(%1) : (tensor<?x1xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<?x6xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// Hazard 12: a padded window along one axis is in no region.
// CHECK-LABEL: @main(
// CHECK-NOT: flow.dispatch.region
// CHECK: tensor.pad
func.func @padded_row(%x: tensor<1x1x8x4xf32>, %w: tensor<1x3x4x8xf32>) -> tensor<1x1x8x8xf32> {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<1x1x8x4xf32>, %b: tensor<1x3x4x8xf32>):
    %1 = "migraphx.convolution"(%a, %b) {channels_last = true, padding = array<i64: 0, 1>} : (tensor<1x1x8x4xf32>, tensor<1x3x4x8xf32>) -> tensor<1x1x8x8xf32>
    "migraphx.yield"(%1) : (tensor<1x1x8x8xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x1x8x4xf32>, tensor<1x3x4x8xf32>) -> tensor<1x1x8x8xf32>
  return %0 : tensor<1x1x8x8xf32>
}

// -----

// Hazards 13 and 17: what is broadcast loses its extents of 1 ahead of the region, and the bools
// that follow a dot are bytes.
// CHECK-LABEL: @main(
// CHECK: arith.extui %{{.*}} : i1 to i8
// CHECK: %[[B:.*]] = tensor.collapse_shape %arg3 {{.*}} : tensor<1x2xf32> into tensor<2xf32>
// CHECK: flow.dispatch.region
// CHECK: linalg.matmul
// CHECK: linalg.generic {{.*}}%[[B]]{{.*}}tensor<4x2xi8>
func.func @mask_behind_a_dot(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %m: tensor<4x2xi1>, %b: tensor<1x2xf32>) -> tensor<4x2xf32> {
  %0 = "migraphx.group"(%x, %w, %m, %b) ({
  ^bb0(%a: tensor<4x8xf32>, %v: tensor<8x2xf32>, %k: tensor<4x2xi1>, %c: tensor<1x2xf32>):
    %1 = "migraphx.dot"(%a, %v) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %2 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 4, 2>} : (tensor<1x2xf32>) -> tensor<4x2xf32>
    %3 = "migraphx.where"(%k, %1, %2) : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    "migraphx.yield"(%3) : (tensor<4x2xf32>) -> ()
  }) {tag = "dot"} : (tensor<4x8xf32>, tensor<8x2xf32>, tensor<4x2xi1>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Hazard 49: widened indices that a scatter reads are computed ahead of it; what is read in order
// stays as it is.
// CHECK-LABEL: @main(
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg2 : tensor<?xi32>) outs(%{{.*}} : tensor<?xi64>)
// CHECK: arith.extsi
// CHECK: %[[B:.*]] = "util.optimization_barrier"(%[[W]])
// CHECK: %[[T:.*]] = "flow.tensor.tie_shape"(%[[B]]
// CHECK: "iree_linalg_ext.scatter"(%[[T]],
func.func @widened_updates(%x: tensor<?xi64>, %i: tensor<?x1xi64>, %u: tensor<?xi32>) -> tensor<?xi64> {
  %0 = "migraphx.convert"(%u) {target_type = i64} : (tensor<?xi32>) -> tensor<?xi64>
  %1 = "migraphx.scatternd_none"(%x, %i, %0) : (tensor<?xi64>, tensor<?x1xi64>, tensor<?xi64>) -> tensor<?xi64>
  return %1 : tensor<?xi64>
}
