// RUN: mgx-opt %s --mgx-fuse-rows --mgx-dead-code-elimination --split-input-file | filecheck %s

// CHECK-LABEL: @norm
// CHECK-NOT: migraphx.fused_reduce
// CHECK: "migraphx.group"(%arg0, %arg1, %{{[0-9]+}}, %{{[0-9]+}})
// CHECK: migraphx.reduce_sum
// CHECK: %[[N:.*]] = "migraphx.mul"
// CHECK-NEXT: "migraphx.blocked_dot"(%[[N]]
// CHECK: tag = "blocked_dot"
func.func @norm(%x: tensor<?x512xf32>, %s: tensor<512xf32>) -> tensor<?x512xf32> {
  %n = "migraphx.fused_reduce"(%x, %s) ({
  ^bb0(%a: tensor<?x512xf32>, %b: tensor<512xf32>):
    %0 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<?x512xf32>) -> tensor<?x1xf32>
    %1 = "migraphx.multibroadcast"(%0, %a) {out_lens = array<i64>} : (tensor<?x1xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    %2 = "migraphx.multibroadcast"(%b, %a) {out_lens = array<i64>} : (tensor<512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    %3 = "migraphx.mul"(%1, %2) : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    "migraphx.yield"(%3) : (tensor<?x512xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<?x512xf32>, tensor<512xf32>) -> tensor<?x512xf32>
  %c = "migraphx.literal"() {value = dense<3> : tensor<256x512xui8>} : () -> tensor<256x512xui8>
  %k = "migraphx.literal"() {value = dense<1.0> : tensor<16x512xf32>} : () -> tensor<16x512xf32>
  %y = "migraphx.group"(%n, %c, %k) ({
  ^bb0(%a: tensor<?x512xf32>, %b: tensor<256x512xui8>, %d: tensor<16x512xf32>):
    %0 = "migraphx.blocked_dot"(%a, %b, %d) {block_size = 32 : i64} : (tensor<?x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<?x512xf32>
    "migraphx.yield"(%0) : (tensor<?x512xf32>) -> ()
  }) {tag = "blocked_dot"} : (tensor<?x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// -----

// A gate, whose halves are slices; the matmul adds to another operand behind it.
// CHECK-LABEL: @gate
// CHECK: %[[G:.*]] = "migraphx.slice"(%arg0)
// CHECK: %[[U:.*]] = "migraphx.slice"(%arg0)
// CHECK: "migraphx.group"(%[[G]], %[[U]], %arg1, %{{[0-9]+}}, %{{[0-9]+}})
// CHECK: %[[N:.*]] = "migraphx.mul"
// CHECK-NEXT: %[[D:.*]] = "migraphx.blocked_dot"(%[[N]]
// CHECK-NEXT: "migraphx.add"(%[[D]]
func.func @gate(%x: tensor<?x1024xf32>, %r: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %g = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 512>} : (tensor<?x1024xf32>) -> tensor<?x512xf32>
  %u = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 512>, ends = array<i64: 1024>} : (tensor<?x1024xf32>) -> tensor<?x512xf32>
  %n = "migraphx.pointwise"(%g, %u) ({
  ^bb0(%a: tensor<?x512xf32>, %b: tensor<?x512xf32>):
    %0 = "migraphx.sigmoid"(%a) : (tensor<?x512xf32>) -> tensor<?x512xf32>
    %1 = "migraphx.mul"(%0, %b) : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    "migraphx.yield"(%1) : (tensor<?x512xf32>) -> ()
  }) : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
  %c = "migraphx.literal"() {value = dense<3> : tensor<256x512xui8>} : () -> tensor<256x512xui8>
  %k = "migraphx.literal"() {value = dense<1.0> : tensor<16x512xf32>} : () -> tensor<16x512xf32>
  %y = "migraphx.group"(%r, %n, %c, %k) ({
  ^bb0(%e: tensor<?x512xf32>, %a: tensor<?x512xf32>, %b: tensor<256x512xui8>, %d: tensor<16x512xf32>):
    %0 = "migraphx.blocked_dot"(%a, %b, %d) {block_size = 32 : i64} : (tensor<?x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<?x512xf32>
    %1 = "migraphx.add"(%0, %e) : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    "migraphx.yield"(%1) : (tensor<?x512xf32>) -> ()
  }) {tag = "blocked_dot"} : (tensor<?x512xf32>, tensor<?x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// -----

// Near misses: rows that another op reads, rows that floats multiply (8 of them), few weights.
// CHECK-LABEL: @read_elsewhere
// CHECK: %[[N:.*]] = "migraphx.pointwise"
// CHECK: "migraphx.group"(%[[N]]
func.func @read_elsewhere(%x: tensor<?x512xf32>) -> (tensor<?x512xf32>, tensor<?x512xf32>) {
  %n = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<?x512xf32>):
    %0 = "migraphx.sigmoid"(%a) : (tensor<?x512xf32>) -> tensor<?x512xf32>
    "migraphx.yield"(%0) : (tensor<?x512xf32>) -> ()
  }) : (tensor<?x512xf32>) -> tensor<?x512xf32>
  %c = "migraphx.literal"() {value = dense<3> : tensor<256x512xui8>} : () -> tensor<256x512xui8>
  %k = "migraphx.literal"() {value = dense<1.0> : tensor<16x512xf32>} : () -> tensor<16x512xf32>
  %y = "migraphx.group"(%n, %c, %k) ({
  ^bb0(%a: tensor<?x512xf32>, %b: tensor<256x512xui8>, %d: tensor<16x512xf32>):
    %0 = "migraphx.blocked_dot"(%a, %b, %d) {block_size = 32 : i64} : (tensor<?x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<?x512xf32>
    "migraphx.yield"(%0) : (tensor<?x512xf32>) -> ()
  }) {tag = "blocked_dot"} : (tensor<?x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<?x512xf32>
  return %y, %n : tensor<?x512xf32>, tensor<?x512xf32>
}

// -----

// CHECK-LABEL: @eight_rows
// CHECK: %[[N:.*]] = "migraphx.pointwise"
// CHECK: "migraphx.group"(%[[N]]
func.func @eight_rows(%x: tensor<8x512xf32>) -> tensor<8x512xf32> {
  %n = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<8x512xf32>):
    %0 = "migraphx.sigmoid"(%a) : (tensor<8x512xf32>) -> tensor<8x512xf32>
    "migraphx.yield"(%0) : (tensor<8x512xf32>) -> ()
  }) : (tensor<8x512xf32>) -> tensor<8x512xf32>
  %c = "migraphx.literal"() {value = dense<3> : tensor<256x512xui8>} : () -> tensor<256x512xui8>
  %k = "migraphx.literal"() {value = dense<1.0> : tensor<16x512xf32>} : () -> tensor<16x512xf32>
  %y = "migraphx.group"(%n, %c, %k) ({
  ^bb0(%a: tensor<8x512xf32>, %b: tensor<256x512xui8>, %d: tensor<16x512xf32>):
    %0 = "migraphx.blocked_dot"(%a, %b, %d) {block_size = 32 : i64} : (tensor<8x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<8x512xf32>
    "migraphx.yield"(%0) : (tensor<8x512xf32>) -> ()
  }) {tag = "blocked_dot"} : (tensor<8x512xf32>, tensor<256x512xui8>, tensor<16x512xf32>) -> tensor<8x512xf32>
  return %y : tensor<8x512xf32>
}

// -----

// CHECK-LABEL: @few_weights
// CHECK: %[[N:.*]] = "migraphx.pointwise"
// CHECK: "migraphx.group"(%[[N]]
func.func @few_weights(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %n = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<?x64xf32>):
    %0 = "migraphx.sigmoid"(%a) : (tensor<?x64xf32>) -> tensor<?x64xf32>
    "migraphx.yield"(%0) : (tensor<?x64xf32>) -> ()
  }) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %c = "migraphx.literal"() {value = dense<3> : tensor<32x64xui8>} : () -> tensor<32x64xui8>
  %k = "migraphx.literal"() {value = dense<1.0> : tensor<2x64xf32>} : () -> tensor<2x64xf32>
  %y = "migraphx.group"(%n, %c, %k) ({
  ^bb0(%a: tensor<?x64xf32>, %b: tensor<32x64xui8>, %d: tensor<2x64xf32>):
    %0 = "migraphx.blocked_dot"(%a, %b, %d) {block_size = 32 : i64} : (tensor<?x64xf32>, tensor<32x64xui8>, tensor<2x64xf32>) -> tensor<?x64xf32>
    "migraphx.yield"(%0) : (tensor<?x64xf32>) -> ()
  }) {tag = "blocked_dot"} : (tensor<?x64xf32>, tensor<32x64xui8>, tensor<2x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
