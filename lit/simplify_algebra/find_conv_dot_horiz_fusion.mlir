// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-simplify-algebra=all-forms=true --split-input-file | filecheck %s --check-prefix=ALL

// Three projections of one input, with a broadcast weight among them.
// CHECK-LABEL: @three
// CHECK: %[[W:.*]] = "migraphx.concat"
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%arg0, %[[W]]) : (tensor<1x2x2xf32>, tensor<1x2x6xf32>)
// CHECK-DAG: %[[A:.*]] = "migraphx.slice"(%[[D]]) {axes = array<i64: 2>, ends = array<i64: 3>, starts = array<i64: 0>}
// CHECK-DAG: %[[B:.*]] = "migraphx.slice"(%[[D]]) {axes = array<i64: 2>, ends = array<i64: 4>, starts = array<i64: 3>}
// CHECK-DAG: %[[C:.*]] = "migraphx.slice"(%[[D]]) {axes = array<i64: 2>, ends = array<i64: 6>, starts = array<i64: 4>}
// CHECK-NOT: migraphx.dot
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @three(%x: tensor<1x2x2xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x1xf32>, tensor<1x2x2xf32>) {
  %u = "migraphx.literal"() {value = dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : tensor<1x2x3xf32>} : () -> tensor<1x2x3xf32>
  %0 = "migraphx.dot"(%x, %u) : (tensor<1x2x2xf32>, tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  %v = "migraphx.literal"() {value = dense<[[[7.0], [8.0]]]> : tensor<1x2x1xf32>} : () -> tensor<1x2x1xf32>
  %1 = "migraphx.dot"(%x, %v) : (tensor<1x2x2xf32>, tensor<1x2x1xf32>) -> tensor<1x2x1xf32>
  %w = "migraphx.literal"() {value = dense<[[9.0, 1.0], [2.0, 3.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %b = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 1, 2, 2>} : (tensor<2x2xf32>) -> tensor<1x2x2xf32>
  %2 = "migraphx.dot"(%x, %b) : (tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  return %0, %1, %2 : tensor<1x2x3xf32>, tensor<1x2x1xf32>, tensor<1x2x2xf32>
}

// -----

// One weight for a whole batch is joined before it is repeated; something uses the first product
// before the second weight stands.
// CHECK-LABEL: @batch
// CHECK: %[[W:.*]] = "migraphx.concat"{{.*}} : (tensor<{{.*}}2x3xf32>, tensor<{{.*}}2x1xf32>)
// CHECK-NEXT: %[[V:.*]] = "migraphx.multibroadcast"(%[[W]])
// CHECK-NEXT: %[[D:.*]] = "migraphx.dot"(%arg0, %[[V]])
// CHECK: migraphx.slice
// CHECK: migraphx.slice
// CHECK-NOT: migraphx.dot
// CHECK: migraphx.softmax
func.func @batch(%x: tensor<4x2x2xf32>) -> (tensor<4x2x3xf32>, tensor<4x2x1xf32>) {
  %u = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %a = "migraphx.multibroadcast"(%u) {out_lens = array<i64: 4, 2, 3>} : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  %0 = "migraphx.dot"(%x, %a) : (tensor<4x2x2xf32>, tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %1 = "migraphx.softmax"(%0) {axis = 2 : i64} : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %v = "migraphx.literal"() {value = dense<[[7.0], [8.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %b = "migraphx.multibroadcast"(%v) {out_lens = array<i64: 4, 2, 1>} : (tensor<2x1xf32>) -> tensor<4x2x1xf32>
  %2 = "migraphx.dot"(%x, %b) : (tensor<4x2x2xf32>, tensor<4x2x1xf32>) -> tensor<4x2x1xf32>
  return %1, %2 : tensor<4x2x3xf32>, tensor<4x2x1xf32>
}

// -----

// Rows of run-time number, and 8-bit operands.
// CHECK-LABEL: @quantized
// CHECK: %[[D:.*]] = "migraphx.quant_dot"({{.*}}) {{.*}}-> tensor<?x3xi32>
// CHECK: "migraphx.slice"(%[[D]]){{.*}} -> tensor<?x2xi32>
// CHECK: "migraphx.slice"(%[[D]]){{.*}} -> tensor<?x1xi32>
// CHECK-NOT: migraphx.quant_dot
func.func @quantized(%x: tensor<?x2xi8>) -> (tensor<?x2xi32>, tensor<?x1xi32>) {
  %u = "migraphx.literal"() {value = dense<[[1, 2], [4, 5]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %0 = "migraphx.quant_dot"(%x, %u) : (tensor<?x2xi8>, tensor<2x2xi8>) -> tensor<?x2xi32>
  %v = "migraphx.literal"() {value = dense<[[7], [8]]> : tensor<2x1xi8>} : () -> tensor<2x1xi8>
  %1 = "migraphx.quant_dot"(%x, %v) : (tensor<?x2xi8>, tensor<2x1xi8>) -> tensor<?x1xi32>
  return %0, %1 : tensor<?x2xi32>, tensor<?x1xi32>
}

// -----

// Slices of channels-last images are copies.
// CHECK-LABEL: @convolutions
// CHECK-COUNT-2: migraphx.convolution
// ALL-LABEL: @convolutions
// ALL: %[[W:.*]] = "migraphx.concat"{{.*}} {axis = 0
// ALL-NEXT: %[[C:.*]] = "migraphx.convolution"(%arg0, %[[W]]) {{.*}}stride = array<i64: 2, 2>
// ALL: "migraphx.slice"(%[[C]]) {axes = array<i64: 1>, ends = array<i64: 2>, starts = array<i64: 0>}
// ALL: "migraphx.slice"(%[[C]]) {axes = array<i64: 1>, ends = array<i64: 3>, starts = array<i64: 2>}
// ALL-NOT: migraphx.convolution
// ALL: return
func.func @convolutions(%x: tensor<1x1x4x4xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x1x2x2xf32>) {
  %u = "migraphx.literal"() {value = dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %u) {stride = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x2x2xf32>
  %v = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %1 = "migraphx.convolution"(%x, %v) {stride = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  return %0, %1 : tensor<1x2x2x2xf32>, tensor<1x1x2x2xf32>
}

// -----

// The two products of a gate meet again.
// CHECK-LABEL: @gate
// CHECK: %[[D:.*]] = "migraphx.dot"(%arg0, %{{[0-9]+}}) : (tensor<3x2xf32>, tensor<2x4xf32>)
// CHECK: %[[G:.*]] = "migraphx.slice"(%[[D]])
// CHECK: %[[U:.*]] = "migraphx.slice"(%[[D]])
// CHECK: "migraphx.sigmoid"(%[[G]])
// CHECK-NOT: migraphx.dot
func.func @gate(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %u = "migraphx.literal"() {value = dense<[[1.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %u) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.sigmoid"(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = "migraphx.mul"(%0, %1) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %v = "migraphx.literal"() {value = dense<[[3.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %3 = "migraphx.dot"(%x, %v) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %4 = "migraphx.mul"(%2, %3) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %4 : tensor<3x2xf32>
}

// -----

// Keys without a bias: theirs is 0.
// CHECK-LABEL: @keys_without_bias
// CHECK: %[[D:.*]] = "migraphx.dot"(%arg0, %{{[0-9]+}}) : (tensor<3x2xf32>, tensor<2x4xf32>)
// CHECK: %[[A:.*]] = "migraphx.add"(%[[D]], %{{[0-9]+}}) : (tensor<3x4xf32>
// CHECK-NEXT: %[[Q:.*]] = "migraphx.slice"(%[[A]])
// CHECK-NEXT: %[[K:.*]] = "migraphx.slice"(%[[A]])
// CHECK-NEXT: return %[[Q]], %[[K]]
func.func @keys_without_bias(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %u = "migraphx.literal"() {value = dense<[[1.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %u) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %b = "migraphx.literal"() {value = dense<[7.0, 8.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %c = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 3, 2>} : (tensor<2xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.add"(%c, %0) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %v = "migraphx.literal"() {value = dense<[[3.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %2 = "migraphx.dot"(%x, %v) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %1, %2 : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// Near misses. Each product has pointwise ops of its own, which would be kernels of their own.
// CHECK-LABEL: @other_epilogues
// CHECK-COUNT-2: migraphx.dot
// CHECK-NOT: migraphx.slice
// ALL-LABEL: @other_epilogues
// ALL-COUNT-2: migraphx.slice
func.func @other_epilogues(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %u = "migraphx.literal"() {value = dense<[[1.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %u) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.sigmoid"(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %v = "migraphx.literal"() {value = dense<[[3.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %2 = "migraphx.dot"(%x, %v) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %1, %2 : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// Windows that differ, so that the results do too.
// CHECK-LABEL: @other_windows
// ALL-LABEL: @other_windows
// ALL-COUNT-2: migraphx.convolution
// ALL-NOT: migraphx.slice
// ALL: return
func.func @other_windows(%x: tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %u = "migraphx.literal"() {value = dense<2.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
  %0 = "migraphx.convolution"(%x, %u) : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %v = "migraphx.literal"() {value = dense<3.0> : tensor<1x1x3x3xf32>} : () -> tensor<1x1x3x3xf32>
  %1 = "migraphx.convolution"(%x, %v) {padding = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32>
  return %0, %1 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

// -----

// The second weights are an input; the first are on the right, the second on the left.
// CHECK-LABEL: @not_alike
// CHECK-COUNT-3: migraphx.dot
// CHECK-NOT: migraphx.slice
func.func @not_alike(%x: tensor<2x2xf32>, %v: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %u = "migraphx.literal"() {value = dense<[[1.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %u) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%x, %v) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %w = "migraphx.literal"() {value = dense<[[3.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %2 = "migraphx.dot"(%w, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1, %2 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// A table of embeddings that is a weight too would be kept twice.
// CHECK-LABEL: @tied
// CHECK-COUNT-2: migraphx.dot
// CHECK-NOT: migraphx.slice
func.func @tied(%x: tensor<2x2xf32>, %i: tensor<1xi64>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>) {
  %u = "migraphx.literal"() {value = dense<[[1.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%x, %u) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %w = "migraphx.literal"() {value = dense<[[3.0, 2.0], [4.0, 5.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %1 = "migraphx.dot"(%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %z = "migraphx.literal"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %j = "migraphx.mul"(%i, %z) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %2 = "migraphx.gather"(%w, %j) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<1xi64>) -> tensor<1x2xf32>
  return %0, %1, %2 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>
}

// -----

// Rows in several dims; codes of either have no such dims.
// CHECK-LABEL: @blocks_of_sequences
// CHECK: [[Y:%.+]] = "migraphx.blocked_dot"(%arg0, {{.*}}(tensor<?x?x64xf32>, tensor<32x12xui8>, tensor<2x12xf32>) -> tensor<?x?x12xf32>
// CHECK-DAG: "migraphx.slice"([[Y]]) {axes = array<i64: 2>, ends = array<i64: 4>, starts = array<i64: 0>}
// CHECK-DAG: "migraphx.slice"([[Y]]) {axes = array<i64: 2>, ends = array<i64: 12>, starts = array<i64: 4>}
// CHECK-NOT: migraphx.blocked_dot
func.func @blocks_of_sequences(%x: tensor<?x?x64xf32>) -> (tensor<?x?x4xf32>, tensor<?x?x8xf32>) {
  %c = "migraphx.literal"() {value = dense<18> : tensor<32x4xui8>} : () -> tensor<32x4xui8>
  %s = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]]> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %d = "migraphx.literal"() {value = dense<35> : tensor<32x8xui8>} : () -> tensor<32x8xui8>
  %t = "migraphx.literal"() {value = dense<0.5> : tensor<2x8xf32>} : () -> tensor<2x8xf32>
  %0 = "migraphx.blocked_dot"(%x, %c, %s) {block_size = 32 : i64} : (tensor<?x?x64xf32>, tensor<32x4xui8>, tensor<2x4xf32>) -> tensor<?x?x4xf32>
  %1 = "migraphx.blocked_dot"(%x, %d, %t) {block_size = 32 : i64} : (tensor<?x?x64xf32>, tensor<32x8xui8>, tensor<2x8xf32>) -> tensor<?x?x8xf32>
  return %0, %1 : tensor<?x?x4xf32>, tensor<?x?x8xf32>
}

// -----

// Codes, scales and zero points are joined along the columns; another block size stays apart.
// CHECK-LABEL: @blocks
// CHECK: [[Y:%.+]] = "migraphx.blocked_dot"(%arg0, {{.*}}block_size = 32{{.*}}(tensor<2x64xf16>, tensor<32x12xui8>, tensor<2x12xf16>) -> tensor<2x12xf16>
// CHECK-DAG: "migraphx.slice"([[Y]]) {axes = array<i64: 1>, ends = array<i64: 4>, starts = array<i64: 0>}
// CHECK-DAG: "migraphx.slice"([[Y]]) {axes = array<i64: 1>, ends = array<i64: 12>, starts = array<i64: 4>}
// CHECK: "migraphx.blocked_dot"(%arg0, {{.*}}block_size = 64
func.func @blocks(%x: tensor<2x64xf16>) -> (tensor<2x4xf16>, tensor<2x8xf16>, tensor<2x4xf16>) {
  %c = "migraphx.literal"() {value = dense<18> : tensor<32x4xui8>} : () -> tensor<32x4xui8>
  %s = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]]> : tensor<2x4xf16>} : () -> tensor<2x4xf16>
  %d = "migraphx.literal"() {value = dense<35> : tensor<32x8xui8>} : () -> tensor<32x8xui8>
  %t = "migraphx.literal"() {value = dense<0.5> : tensor<2x8xf16>} : () -> tensor<2x8xf16>
  %e = "migraphx.literal"() {value = dense<52> : tensor<32x4xui8>} : () -> tensor<32x4xui8>
  %u = "migraphx.literal"() {value = dense<[[1.0, 2.0, 3.0, 6.0]]> : tensor<1x4xf16>} : () -> tensor<1x4xf16>
  %0 = "migraphx.blocked_dot"(%x, %c, %s) {block_size = 32 : i64} : (tensor<2x64xf16>, tensor<32x4xui8>, tensor<2x4xf16>) -> tensor<2x4xf16>
  %1 = "migraphx.blocked_dot"(%x, %d, %t) {block_size = 32 : i64} : (tensor<2x64xf16>, tensor<32x8xui8>, tensor<2x8xf16>) -> tensor<2x8xf16>
  %2 = "migraphx.blocked_dot"(%x, %e, %u) {block_size = 64 : i64} : (tensor<2x64xf16>, tensor<32x4xui8>, tensor<1x4xf16>) -> tensor<2x4xf16>
  return %0, %1, %2 : tensor<2x4xf16>, tensor<2x8xf16>, tensor<2x4xf16>
}
