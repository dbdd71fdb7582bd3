// The rule `planes` takes its kernel, and leaves one whose result stays channels-last.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-fuse-layout --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels --split-input-file 2>&1 | filecheck %s

// CHECK: planes (
func.func @depthwise(%x: tensor<1x16x14x14xf32>) -> tensor<1x16x14x14xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x1x16xf32>} : () -> tensor<3x3x1x16xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x16x14x14xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x16x14x14xf32>) -> tensor<1x14x14x16xf32>
    "migraphx.yield"(%t) : (tensor<1x14x14x16xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x16x14x14xf32>) -> tensor<1x14x14x16xf32>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x14x14x16xf32>, %b: tensor<3x3x1x16xf32>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, group = 16 : i64, channels_last = true} : (tensor<1x14x14x16xf32>, tensor<3x3x1x16xf32>) -> tensor<1x14x14x16xf32>
    %r = "migraphx.relu"(%c) : (tensor<1x14x14x16xf32>) -> tensor<1x14x14x16xf32>
    "migraphx.yield"(%r) : (tensor<1x14x14x16xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x14x14x16xf32>, tensor<3x3x1x16xf32>) -> tensor<1x14x14x16xf32>
  %2 = "migraphx.group"(%1) ({
  ^bb0(%a: tensor<1x14x14x16xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x14x14x16xf32>) -> tensor<1x16x14x14xf32>
    "migraphx.yield"(%t) : (tensor<1x16x14x14xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x14x14x16xf32>) -> tensor<1x16x14x14xf32>
  return %2 : tensor<1x16x14x14xf32>
}

// -----

// CHECK: its image and its result are not planes
func.func @dense(%x: tensor<1x16x14x14xf32>) -> tensor<1x16x14x14xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x16x16xf32>} : () -> tensor<3x3x16x16xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x16x14x14xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x16x14x14xf32>) -> tensor<1x14x14x16xf32>
    "migraphx.yield"(%t) : (tensor<1x14x14x16xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x16x14x14xf32>) -> tensor<1x14x14x16xf32>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x14x14x16xf32>, %b: tensor<3x3x16x16xf32>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, group = 1 : i64, channels_last = true} : (tensor<1x14x14x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x14x14x16xf32>
    %r = "migraphx.relu"(%c) : (tensor<1x14x14x16xf32>) -> tensor<1x14x14x16xf32>
    "migraphx.yield"(%r) : (tensor<1x14x14x16xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x14x14x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x14x14x16xf32>
  %2 = "migraphx.group"(%1) ({
  ^bb0(%a: tensor<1x14x14x16xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x14x14x16xf32>) -> tensor<1x16x14x14xf32>
    "migraphx.yield"(%t) : (tensor<1x16x14x14xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x14x14x16xf32>) -> tensor<1x16x14x14xf32>
  return %2 : tensor<1x16x14x14xf32>
}
