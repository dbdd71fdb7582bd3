// RUN: mgx-opt %s --mgx-fuse-layout --split-input-file | filecheck %s

// A depthwise convolution of planes, whose result is wanted as planes, is one kernel.
// CHECK-LABEL: @depthwise
// CHECK-NEXT: %[[W:.*]] = "migraphx.literal"
// CHECK: "migraphx.group"(%arg0, %[[W]])
// CHECK: %[[T:.*]] = "migraphx.transpose"(%{{.*}}) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: %[[C:.*]] = "migraphx.convolution"(%[[T]]
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[C]])
// CHECK-NEXT: %[[P:.*]] = "migraphx.transpose"(%[[R]]) {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT: "migraphx.yield"(%[[P]])
// CHECK-NEXT: tag = "convolution"
// CHECK-NOT: tag = "transpose"
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

// Near miss: the result is read as it is, too.
// CHECK-LABEL: @read_twice
// CHECK: tag = "transpose"
// CHECK: tag = "convolution"
// CHECK: tag = "transpose"
func.func @read_twice(%x: tensor<1x16x14x14xf32>) -> (tensor<1x16x14x14xf32>, tensor<1x14x14x16xf32>) {
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
  return %2, %1 : tensor<1x16x14x14xf32>, tensor<1x14x14x16xf32>
}

// -----

// Near miss: the convolution is dense.
// CHECK-LABEL: @dense
// CHECK: tag = "transpose"
// CHECK: tag = "convolution"
// CHECK: tag = "transpose"
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

// -----

// Near miss: half of a vector has no columns.
// CHECK-LABEL: @short_rows
// CHECK: tag = "transpose"
// CHECK: tag = "convolution"
// CHECK: tag = "transpose"
func.func @short_rows(%x: tensor<1x16x7x7xf32>) -> tensor<1x16x7x7xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<3x3x1x16xf32>} : () -> tensor<3x3x1x16xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x16x7x7xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x16x7x7xf32>) -> tensor<1x7x7x16xf32>
    "migraphx.yield"(%t) : (tensor<1x7x7x16xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x16x7x7xf32>) -> tensor<1x7x7x16xf32>
  %1 = "migraphx.group"(%0, %w) ({
  ^bb0(%a: tensor<1x7x7x16xf32>, %b: tensor<3x3x1x16xf32>):
    %c = "migraphx.convolution"(%a, %b) {padding = array<i64: 1, 1>, group = 16 : i64, channels_last = true} : (tensor<1x7x7x16xf32>, tensor<3x3x1x16xf32>) -> tensor<1x7x7x16xf32>
    %r = "migraphx.relu"(%c) : (tensor<1x7x7x16xf32>) -> tensor<1x7x7x16xf32>
    "migraphx.yield"(%r) : (tensor<1x7x7x16xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x7x7x16xf32>, tensor<3x3x1x16xf32>) -> tensor<1x7x7x16xf32>
  %2 = "migraphx.group"(%1) ({
  ^bb0(%a: tensor<1x7x7x16xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x7x7x16xf32>) -> tensor<1x16x7x7xf32>
    "migraphx.yield"(%t) : (tensor<1x16x7x7xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x7x7x16xf32>) -> tensor<1x16x7x7xf32>
  return %2 : tensor<1x16x7x7xf32>
}

// -----

// A convolution of single pixels is a matmul by the planes.
// CHECK-LABEL: @pixels
// CHECK: "migraphx.transpose"(%{{.*}}) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: "migraphx.convolution"
// CHECK: "migraphx.transpose"(%{{.*}}) {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT: "migraphx.yield"
// CHECK-NEXT: tag = "convolution"
// CHECK-NOT: tag = "transpose"
func.func @pixels(%x: tensor<1x16x28x28xf32>, %v: tensor<32xf32>) -> tensor<1x32x28x28xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<1x1x16x32xf32>} : () -> tensor<1x1x16x32xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x16x28x28xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x16x28x28xf32>) -> tensor<1x28x28x16xf32>
    "migraphx.yield"(%t) : (tensor<1x28x28x16xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x16x28x28xf32>) -> tensor<1x28x28x16xf32>
  %1 = "migraphx.group"(%0, %w, %v) ({
  ^bb0(%a: tensor<1x28x28x16xf32>, %b: tensor<1x1x16x32xf32>, %d: tensor<32xf32>):
    %c = "migraphx.convolution"(%a, %b) {channels_last = true} : (tensor<1x28x28x16xf32>, tensor<1x1x16x32xf32>) -> tensor<1x28x28x32xf32>
    %e = "migraphx.broadcast"(%d) {axis = 3 : i64, out_lens = array<i64: 1, 28, 28, 32>} : (tensor<32xf32>) -> tensor<1x28x28x32xf32>
    %r = "migraphx.add"(%c, %e) : (tensor<1x28x28x32xf32>, tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
    "migraphx.yield"(%r) : (tensor<1x28x28x32xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x28x28x16xf32>, tensor<1x1x16x32xf32>, tensor<32xf32>) -> tensor<1x28x28x32xf32>
  %2 = "migraphx.group"(%1) ({
  ^bb0(%a: tensor<1x28x28x32xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x28x28x32xf32>) -> tensor<1x32x28x28xf32>
    "migraphx.yield"(%t) : (tensor<1x32x28x28xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x28x28x32xf32>) -> tensor<1x32x28x28xf32>
  return %2 : tensor<1x32x28x28xf32>
}

// -----

// Near miss: the bias has a number for each column.
// CHECK-LABEL: @by_column
// CHECK: tag = "transpose"
// CHECK: tag = "convolution"
// CHECK: tag = "transpose"
func.func @by_column(%x: tensor<1x16x28x28xf32>, %v: tensor<28xf32>) -> tensor<1x32x28x28xf32> {
  %w = "migraphx.literal"() {value = dense<0.25> : tensor<1x1x16x32xf32>} : () -> tensor<1x1x16x32xf32>
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<1x16x28x28xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x16x28x28xf32>) -> tensor<1x28x28x16xf32>
    "migraphx.yield"(%t) : (tensor<1x28x28x16xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x16x28x28xf32>) -> tensor<1x28x28x16xf32>
  %1 = "migraphx.group"(%0, %w, %v) ({
  ^bb0(%a: tensor<1x28x28x16xf32>, %b: tensor<1x1x16x32xf32>, %d: tensor<28xf32>):
    %c = "migraphx.convolution"(%a, %b) {channels_last = true} : (tensor<1x28x28x16xf32>, tensor<1x1x16x32xf32>) -> tensor<1x28x28x32xf32>
    %e = "migraphx.broadcast"(%d) {axis = 2 : i64, out_lens = array<i64: 1, 28, 28, 32>} : (tensor<28xf32>) -> tensor<1x28x28x32xf32>
    %r = "migraphx.add"(%c, %e) : (tensor<1x28x28x32xf32>, tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
    "migraphx.yield"(%r) : (tensor<1x28x28x32xf32>) -> ()
  }) {tag = "convolution"} : (tensor<1x28x28x16xf32>, tensor<1x1x16x32xf32>, tensor<28xf32>) -> tensor<1x28x28x32xf32>
  %2 = "migraphx.group"(%1) ({
  ^bb0(%a: tensor<1x28x28x32xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x28x28x32xf32>) -> tensor<1x32x28x28xf32>
    "migraphx.yield"(%t) : (tensor<1x32x28x28xf32>) -> ()
  }) {tag = "transpose"} : (tensor<1x28x28x32xf32>) -> tensor<1x32x28x28xf32>
  return %2 : tensor<1x32x28x28xf32>
}
