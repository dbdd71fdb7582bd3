// RUN: mgx-opt %s --mgx-fuse-layout --split-input-file | filecheck %s

// The kernel of the convolution reads the image as it is.
// CHECK-LABEL: @image
// CHECK-NEXT: %[[W:.*]] = "migraphx.literal"
// CHECK: "migraphx.group"(%arg0, %[[W]])
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<1x3x8x8xf32>, %[[V:.*]]: tensor<3x3x3x16xf32>):
// CHECK-NEXT: %[[T:.*]] = "migraphx.transpose"(%[[X]]) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: "migraphx.convolution"(%[[T]], %[[V]])
// CHECK-NEXT: "migraphx.relu"
// CHECK-NEXT: "migraphx.yield"
// CHECK-NOT: tag = "transpose"
func.func @image(%x: tensor<1x3x8x8xf32>) -> tensor<1x8x8x16xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x3x16xf32>} : () -> tensor<3x3x3x16xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x3x8x8xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x8x8x3xf32>
    "migraphx.yield"(%t) : (tensor<1x8x8x3xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x3x8x8xf32>) -> tensor<1x8x8x3xf32>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x8x8x3xf32>, %b: tensor<3x3x3x16xf32>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x8x8x16xf32>
    %r = "migraphx.relu"(%c) : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
    "migraphx.yield"(%r) : (tensor<1x8x8x16xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x8x8x16xf32>
  return %1 : tensor<1x8x8x16xf32>
}

// -----

// The transposed image is a result as well.
// CHECK-LABEL: @read_twice
// CHECK: tag = "transpose"
// CHECK: ^bb0(%{{.*}}: tensor<1x8x8x3xf32>, %{{.*}}
// CHECK-NEXT: "migraphx.convolution"
func.func @read_twice(%x: tensor<1x3x8x8xf32>) -> (tensor<1x8x8x16xf32>, tensor<1x8x8x3xf32>) {
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
  return %1, %0 : tensor<1x8x8x16xf32>, tensor<1x8x8x3xf32>
}

// -----

// Weights that are no constant: not a kernel of vector loops.
// CHECK-LABEL: @open_weights
// CHECK: tag = "transpose"
func.func @open_weights(%x: tensor<1x3x8x8xf32>, %w: tensor<3x3x3x16xf32>) -> tensor<1x8x8x16xf32> {
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

// -----

// Many channels: those of a pixel are better read as neighbours.
// CHECK-LABEL: @many_channels
// CHECK: tag = "transpose"
func.func @many_channels(%x: tensor<1x32x8x8xf32>) -> tensor<1x8x8x16xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<1x1x32x16xf32>} : () -> tensor<1x1x32x16xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x32x8x8xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x32x8x8xf32>) -> tensor<1x8x8x32xf32>
    "migraphx.yield"(%t) : (tensor<1x8x8x32xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x32x8x8xf32>) -> tensor<1x8x8x32xf32>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x8x8x32xf32>, %b: tensor<1x1x32x16xf32>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 0, 0>, channels_last = true} : (tensor<1x8x8x32xf32>, tensor<1x1x32x16xf32>) -> tensor<1x8x8x16xf32>
    "migraphx.yield"(%c) : (tensor<1x8x8x16xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x32xf32>, tensor<1x1x32x16xf32>) -> tensor<1x8x8x16xf32>
  return %1 : tensor<1x8x8x16xf32>
}

// -----

// A kernel that gives the convolution itself as well.
// CHECK-LABEL: @two_results
// CHECK: %[[K:.*]]:2 = "migraphx.group"(%arg0, %{{.*}})
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<1x3x8x8xf32>, %{{.*}}: tensor<3x3x3x16xf32>):
// CHECK-NEXT: "migraphx.transpose"(%[[X]])
// CHECK: return %[[K]]#0, %[[K]]#1
func.func @two_results(%x: tensor<1x3x8x8xf32>) -> (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>) {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x3x16xf32>} : () -> tensor<3x3x3x16xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x3x8x8xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x8x8x3xf32>
    "migraphx.yield"(%t) : (tensor<1x8x8x3xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x3x8x8xf32>) -> tensor<1x8x8x3xf32>
  %1:2 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x8x8x3xf32>, %b: tensor<3x3x3x16xf32>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, channels_last = true} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x8x8x16xf32>
    %r = "migraphx.relu"(%c) : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
    "migraphx.yield"(%c, %r) : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>)
  return %1#0, %1#1 : tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>
}
