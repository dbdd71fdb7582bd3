// RUN: mgx-opt %s --mgx-fuse-layout=gathered=true --split-input-file | filecheck %s

// The kernel of the convolution writes its result in the order that is asked for.
// CHECK-LABEL: @planar
// CHECK: "migraphx.group"(%arg0, %arg1)
// CHECK: %[[C:.*]] = "migraphx.convolution"
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[C]])
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%[[R]]) {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT: "migraphx.yield"(%[[T]])
// CHECK-NOT: "migraphx.group"
func.func @planar(%x: tensor<1x8x8x32xf16>, %w: tensor<3x3x32x16xf16>) -> tensor<1x16x8x8xf16> {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<1x8x8x32xf16>, %b: tensor<3x3x32x16xf16>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x32xf16>, tensor<3x3x32x16xf16>) -> tensor<1x8x8x16xf16>
    %r = "migraphx.relu"(%c) : (tensor<1x8x8x16xf16>) -> tensor<1x8x8x16xf16>
    "migraphx.yield"(%r) : (tensor<1x8x8x16xf16>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x32xf16>, tensor<3x3x32x16xf16>) -> tensor<1x8x8x16xf16>
  %1 = "migraphx.group"(%0) ({
  ^bb0(%a: tensor<1x8x8x16xf16>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x16xf16>) -> tensor<1x16x8x8xf16>
    "migraphx.yield"(%t) : (tensor<1x16x8x8xf16>) -> ()
  }) {tag = "transpose"} : (tensor<1x8x8x16xf16>) -> tensor<1x16x8x8xf16>
  return %1 : tensor<1x16x8x8xf16>
}

// -----

// Near miss: the result is read as it is, too.
// CHECK-LABEL: @read_twice
// CHECK: "migraphx.group"
// CHECK: tag = "convolution"
// CHECK: "migraphx.group"
// CHECK: tag = "transpose"
func.func @read_twice(%x: tensor<1x8x8x32xf16>, %w: tensor<3x3x32x16xf16>) -> (tensor<1x8x8x16xf16>, tensor<1x16x8x8xf16>) {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<1x8x8x32xf16>, %b: tensor<3x3x32x16xf16>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x32xf16>, tensor<3x3x32x16xf16>) -> tensor<1x8x8x16xf16>
    "migraphx.yield"(%c) : (tensor<1x8x8x16xf16>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x32xf16>, tensor<3x3x32x16xf16>) -> tensor<1x8x8x16xf16>
  %1 = "migraphx.group"(%0) ({
  ^bb0(%a: tensor<1x8x8x16xf16>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x16xf16>) -> tensor<1x16x8x8xf16>
    "migraphx.yield"(%t) : (tensor<1x16x8x8xf16>) -> ()
  }) {tag = "transpose"} : (tensor<1x8x8x16xf16>) -> tensor<1x16x8x8xf16>
  return %0, %1 : tensor<1x8x8x16xf16>, tensor<1x16x8x8xf16>
}

// -----

// Near miss: sizes that the run knows; the kernel's result would have them in another order.
// CHECK-LABEL: @open
// CHECK: tag = "convolution"
// CHECK: tag = "transpose"
func.func @open(%x: tensor<?x8x8x32xf16>, %w: tensor<3x3x32x16xf16>) -> tensor<?x16x8x8xf16> {
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<?x8x8x32xf16>, %b: tensor<3x3x32x16xf16>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<?x8x8x32xf16>, tensor<3x3x32x16xf16>) -> tensor<?x8x8x16xf16>
    "migraphx.yield"(%c) : (tensor<?x8x8x16xf16>) -> ()
  }) {tag = "convolution"} : (tensor<?x8x8x32xf16>, tensor<3x3x32x16xf16>) -> tensor<?x8x8x16xf16>
  %1 = "migraphx.group"(%0) ({
  ^bb0(%a: tensor<?x8x8x16xf16>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x8x8x16xf16>) -> tensor<?x16x8x8xf16>
    "migraphx.yield"(%t) : (tensor<?x16x8x8xf16>) -> ()
  }) {tag = "transpose"} : (tensor<?x8x8x16xf16>) -> tensor<?x16x8x8xf16>
  return %1 : tensor<?x16x8x8xf16>
}
