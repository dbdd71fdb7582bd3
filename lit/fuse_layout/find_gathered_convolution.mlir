// RUN: mgx-opt %s --mgx-fuse-layout=gathered=true --split-input-file | filecheck %s

// The kernel of the convolution converts and transposes what it reads.
// CHECK-LABEL: @image
// CHECK-NOT: "migraphx.pointwise"
// CHECK: %[[W:.*]] = "migraphx.literal"
// CHECK-NOT: "migraphx.pointwise"
// CHECK: "migraphx.group"(%arg0, %[[W]])
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<1x3x8x8xf32>, %[[V:.*]]: tensor<3x3x3x16xf16>):
// CHECK-NEXT: %[[H:.*]] = "migraphx.convert"(%[[X]])
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%[[H]]) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: "migraphx.convolution"(%[[T]], %[[V]])
// CHECK-NOT: tag = "transpose"
func.func @image(%x: tensor<1x3x8x8xf32>) -> tensor<1x8x8x16xf16> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x3x16xf16>} : () -> tensor<3x3x3x16xf16>
  %h = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<1x3x8x8xf32>):
    %c = "migraphx.convert"(%a) {target_type = f16} : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf16>
    "migraphx.yield"(%c) : (tensor<1x3x8x8xf16>) -> ()
  }) : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf16>
  %0 = "migraphx.group"(%h) ({
  ^bb0(%a: tensor<1x3x8x8xf16>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x3x8x8xf16>) -> tensor<1x8x8x3xf16>
    "migraphx.yield"(%t) : (tensor<1x8x8x3xf16>) -> ()
  }) {tag = "transpose"} : (tensor<1x3x8x8xf16>) -> tensor<1x8x8x3xf16>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x8x8x3xf16>, %b: tensor<3x3x3x16xf16>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>) -> tensor<1x8x8x16xf16>
    "migraphx.yield"(%c) : (tensor<1x8x8x16xf16>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>) -> tensor<1x8x8x16xf16>
  return %1 : tensor<1x8x8x16xf16>
}

// -----

// An exponential would be computed again for each window.
// CHECK-LABEL: @costly
// CHECK: "migraphx.pointwise"
// CHECK: "migraphx.exp"
// CHECK: "migraphx.yield"
// CHECK: "migraphx.group"
func.func @costly(%x: tensor<1x8x8x3xf16>) -> tensor<1x8x8x16xf16> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x3x16xf16>} : () -> tensor<3x3x3x16xf16>
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<1x8x8x3xf16>):
    %c = "migraphx.exp"(%a) : (tensor<1x8x8x3xf16>) -> tensor<1x8x8x3xf16>
    "migraphx.yield"(%c) : (tensor<1x8x8x3xf16>) -> ()
  }) : (tensor<1x8x8x3xf16>) -> tensor<1x8x8x3xf16>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x8x8x3xf16>, %b: tensor<3x3x3x16xf16>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>) -> tensor<1x8x8x16xf16>
    "migraphx.yield"(%c) : (tensor<1x8x8x16xf16>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>) -> tensor<1x8x8x16xf16>
  return %1 : tensor<1x8x8x16xf16>
}

// -----

// What is read elsewhere too is made once.
// CHECK-LABEL: @read_twice
// CHECK: tag = "transpose"
func.func @read_twice(%x: tensor<1x3x8x8xf16>) -> (tensor<1x8x8x16xf16>, tensor<1x8x8x3xf16>) {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x3x16xf16>} : () -> tensor<3x3x3x16xf16>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x3x8x8xf16>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x3x8x8xf16>) -> tensor<1x8x8x3xf16>
    "migraphx.yield"(%t) : (tensor<1x8x8x3xf16>) -> ()
  }) {tag = "transpose"} : (tensor<1x3x8x8xf16>) -> tensor<1x8x8x3xf16>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x8x8x3xf16>, %b: tensor<3x3x3x16xf16>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>) -> tensor<1x8x8x16xf16>
    "migraphx.yield"(%c) : (tensor<1x8x8x16xf16>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>) -> tensor<1x8x8x16xf16>
  return %1, %0 : tensor<1x8x8x16xf16>, tensor<1x8x8x3xf16>
}

// -----

// f32 windows are not gathered.
// CHECK-LABEL: @wide
// CHECK: tag = "transpose"
func.func @wide(%x: tensor<1x3x8x8xf32>) -> tensor<1x8x8x16xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x3x16xf32>} : () -> tensor<3x3x3x16xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x3x8x8xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x8x8x3xf32>
    "migraphx.yield"(%t) : (tensor<1x8x8x3xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x3x8x8xf32>) -> tensor<1x8x8x3xf32>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x8x8x3xf32>, %b: tensor<3x3x3x16xf32>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x8x8x16xf32>
    "migraphx.yield"(%c) : (tensor<1x8x8x16xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x8x8x16xf32>
  return %1 : tensor<1x8x8x16xf32>
}
