// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --split-input-file | filecheck %s
// Twice is once.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --split-input-file -o %t.once
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-fuse-pointwise-reduce --split-input-file -o %t.twice
// RUN: diff %t.once %t.twice

// A chain is one kernel; what only it uses has no place outside.
// CHECK-LABEL: @chain
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<2x3xf32>):
// CHECK-NEXT: %[[S:.*]] = "migraphx.add"(%[[A]], %[[B]])
// CHECK-NEXT: %[[R:.*]] = "migraphx.relu"(%[[S]])
// CHECK-NEXT: %[[M:.*]] = "migraphx.mul"(%[[R]], %[[A]])
// CHECK-NEXT: "migraphx.yield"(%[[M]]) : (tensor<2x3xf32>) -> ()
// CHECK-NEXT: }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[K]]
func.func @chain(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.relu"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.mul"(%1, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// -----

// The broadcast of an operand goes inside, the operand stays as it is; a uniform literal too.
// CHECK-LABEL: @broadcast
// CHECK: "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<2x3x4xf32>, %[[B:.*]]: tensor<3xf32>):
// CHECK-DAG: %[[L:.*]] = "migraphx.literal"() {value = dense<2.000000e+00> : tensor<1xf32>}
// CHECK-DAG: %[[BB:.*]] = "migraphx.broadcast"(%[[B]]) {axis = 1
// CHECK-DAG: %[[LB:.*]] = "migraphx.multibroadcast"(%[[L]])
// CHECK: "migraphx.yield"
func.func @broadcast(%x: tensor<2x3x4xf32>, %b: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %l = "migraphx.literal"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = "migraphx.broadcast"(%b) {axis = 1 : i64, out_lens = array<i64: 2, 3, 4>} : (tensor<3xf32>) -> tensor<2x3x4xf32>
  %1 = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 2, 3, 4>} : (tensor<1xf32>) -> tensor<2x3x4xf32>
  %2 = "migraphx.mul"(%x, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = "migraphx.add"(%2, %0) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %3 : tensor<2x3x4xf32>
}

// -----

// Several results; a literal of different elements stays outside.
// CHECK-LABEL: @several_results
// CHECK: %[[L:.*]] = "migraphx.literal"
// CHECK: %[[K:.*]]:2 = "migraphx.pointwise"({{.*}}) ({
// CHECK: "migraphx.yield"(%[[A:.*]], %[[B:.*]]) : (tensor<2xf32>, tensor<2xi1>) -> ()
// CHECK: return %[[K]]#0, %[[K]]#1
func.func @several_results(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>) {
  %l = "migraphx.literal"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.add"(%x, %l) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.convert"(%0) {target_type = i1} : (tensor<2xf32>) -> tensor<2xi1>
  return %0, %1 : tensor<2xf32>, tensor<2xi1>
}

// -----

// A convolution takes bias, residual and activation with it.
// CHECK-LABEL: @convolution
// CHECK-NEXT: %[[K:.*]] = "migraphx.group"(%arg0, %arg1, %arg2, %arg3) ({
// CHECK: migraphx.convolution
// CHECK: migraphx.broadcast
// CHECK: migraphx.add
// CHECK: migraphx.add
// CHECK: migraphx.relu
// CHECK: }) {tag = "convolution"}
// CHECK-NEXT: return %[[K]]
func.func @convolution(%x: tensor<1x4x4x2xf32>, %w: tensor<1x1x2x3xf32>, %b: tensor<3xf32>, %r: tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32> {
  %0 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<1x4x4x2xf32>, tensor<1x1x2x3xf32>) -> tensor<1x4x4x3xf32>
  %1 = "migraphx.broadcast"(%b) {axis = 3 : i64, out_lens = array<i64: 1, 4, 4, 3>} : (tensor<3xf32>) -> tensor<1x4x4x3xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x4x4x3xf32>, tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  %3 = "migraphx.add"(%2, %r) : (tensor<1x4x4x3xf32>, tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  %4 = "migraphx.relu"(%3) : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  return %4 : tensor<1x4x4x3xf32>
}

// -----

// Two convolutions are two kernels: the sum goes with the later.
// CHECK-LABEL: @two_convolutions
// CHECK-NEXT: %[[A:.*]] = "migraphx.group"(%arg0, %arg1) ({
// CHECK: %[[B:.*]] = "migraphx.group"(%arg0, %arg2, %[[A]]) ({
// CHECK: migraphx.convolution
// CHECK-NEXT: migraphx.add
// CHECK: return %[[B]]
func.func @two_convolutions(%x: tensor<1x4x4x2xf32>, %v: tensor<1x1x2x3xf32>, %w: tensor<1x1x2x3xf32>) -> tensor<1x4x4x3xf32> {
  %0 = "migraphx.convolution"(%x, %v) {channels_last = true} : (tensor<1x4x4x2xf32>, tensor<1x1x2x3xf32>) -> tensor<1x4x4x3xf32>
  %1 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<1x4x4x2xf32>, tensor<1x1x2x3xf32>) -> tensor<1x4x4x3xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<1x4x4x3xf32>, tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  return %2 : tensor<1x4x4x3xf32>
}

// -----

// Dot and the erf form of GELU.
// CHECK-LABEL: @dot_gelu
// CHECK: %[[K:.*]] = "migraphx.group"(%arg0, %arg1, %arg2) ({
// CHECK: migraphx.dot
// CHECK: migraphx.erf
// CHECK: }) {tag = "dot"}
// CHECK-NEXT: return %[[K]]
func.func @dot_gelu(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
  %h = "migraphx.literal"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %o = "migraphx.literal"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %s = "migraphx.literal"() {value = dense<0.70710678> : tensor<f32>} : () -> tensor<f32>
  %hb = "migraphx.multibroadcast"(%h) {out_lens = array<i64: 4, 16>} : (tensor<f32>) -> tensor<4x16xf32>
  %ob = "migraphx.multibroadcast"(%o) {out_lens = array<i64: 4, 16>} : (tensor<f32>) -> tensor<4x16xf32>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 4, 16>} : (tensor<f32>) -> tensor<4x16xf32>
  %bb = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 4, 16>} : (tensor<16xf32>) -> tensor<4x16xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = "migraphx.add"(%0, %bb) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = "migraphx.mul"(%1, %sb) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = "migraphx.erf"(%2) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %4 = "migraphx.add"(%3, %ob) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %5 = "migraphx.mul"(%1, %4) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %6 = "migraphx.mul"(%5, %hb) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %6 : tensor<4x16xf32>
}

// -----

// What a dot reads through a broadcast is made outside.
// CHECK-LABEL: @dot_broadcast
// CHECK-NEXT: %[[B:.*]] = "migraphx.multibroadcast"(%arg1)
// CHECK-NEXT: "migraphx.group"(%arg0, %[[B]]) ({
func.func @dot_broadcast(%x: tensor<2x4x8xf32>, %w: tensor<1x8x3xf32>) -> tensor<2x4x3xf32> {
  %0 = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 2, 8, 3>} : (tensor<1x8x3xf32>) -> tensor<2x8x3xf32>
  %1 = "migraphx.dot"(%x, %0) : (tensor<2x4x8xf32>, tensor<2x8x3xf32>) -> tensor<2x4x3xf32>
  return %1 : tensor<2x4x3xf32>
}

// -----

// Layer normalisation: the residual sum, two reductions and what follows.
// CHECK-LABEL: @layernorm
// CHECK: %[[K:.*]] = "migraphx.fused_reduce"(%arg0, %arg1, %arg2) ({
// CHECK: migraphx.add
// CHECK: migraphx.reduce_mean
// CHECK: migraphx.sub
// CHECK: migraphx.reduce_mean
// CHECK: migraphx.rsqrt
// CHECK: migraphx.mul
// CHECK: }) {axes = array<i64: 1>}
// CHECK-NEXT: return %[[K]]
func.func @layernorm(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = "migraphx.literal"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %eb = "migraphx.multibroadcast"(%e) {out_lens = array<i64: 4, 1>} : (tensor<f32>) -> tensor<4x1xf32>
  %gb = "migraphx.multibroadcast"(%g) {out_lens = array<i64: 4, 8>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %0 = "migraphx.add"(%x, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %3 = "migraphx.sub"(%0, %2) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "migraphx.mul"(%3, %3) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "migraphx.reduce_mean"(%4) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %6 = "migraphx.add"(%5, %eb) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %7 = "migraphx.rsqrt"(%6) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = "migraphx.multibroadcast"(%7) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %9 = "migraphx.mul"(%3, %8) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %10 = "migraphx.mul"(%9, %gb) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %10 : tensor<4x8xf32>
}

// -----

// Root mean square: the squares belong to the reduction.
// CHECK-LABEL: @rmsnorm
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_reduce"(%arg0, %arg1) ({
// CHECK: }) {axes = array<i64: 2>}
// CHECK-NEXT: return %[[K]]
func.func @rmsnorm(%x: tensor<2x4x8xf32>, %g: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %0 = "migraphx.abs"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = "migraphx.mul"(%0, %0) : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %2 = "migraphx.reduce_mean"(%1) {axes = array<i64: -1>} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %3 = "migraphx.rsqrt"(%2) : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %4 = "migraphx.multibroadcast"(%3) {out_lens = array<i64: 2, 4, 8>} : (tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %5 = "migraphx.mul"(%g, %4) : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %5 : tensor<2x4x8xf32>
}

// -----

// What a reduction reads may be a result of its kernel too; no other value before it may.
// CHECK-LABEL: @sum_is_result
// CHECK-NEXT: %[[K:.*]]:2 = "migraphx.fused_reduce"(%arg0, %arg1) ({
// CHECK: return %[[K]]#0, %[[K]]#1
func.func @sum_is_result(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %0 = "migraphx.add"(%x, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x1xf32>
}

// -----

// CHECK-LABEL: @sum_is_result_dynamic
// CHECK-NEXT: %[[P:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: "migraphx.fused_reduce"(%[[P]]) ({
func.func @sum_is_result_dynamic(%x: tensor<?x8xf32>, %r: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x1xf32>) {
  %0 = "migraphx.add"(%x, %r) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 1>} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x1xf32>
}

// -----

// CHECK-LABEL: @earlier_is_result
// CHECK-NEXT: %[[P:.*]]:2 = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: "migraphx.fused_reduce"(%[[P]]#1) ({
func.func @earlier_is_result(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %0 = "migraphx.add"(%x, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "migraphx.mul"(%0, %0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "migraphx.reduce_mean"(%1) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0, %2 : tensor<4x8xf32>, tensor<4x1xf32>
}

// -----

// Softmax with its scale before it; no axes stated means all of them.
// CHECK-LABEL: @softmax
// CHECK-NEXT: "migraphx.fused_reduce"(%arg0, %arg1) ({
// CHECK: migraphx.mul
// CHECK-NEXT: migraphx.softmax
// CHECK: }) {axes = array<i64: 1>}
func.func @softmax(%x: tensor<4x8xf32>, %s: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.mul"(%x, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "migraphx.softmax"(%0) {axis = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @reduce_all
// CHECK: }) {axes = array<i64: 0, 1>}
func.func @reduce_all(%x: tensor<4x8xf32>) -> tensor<1x1xf32> {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64>} : (tensor<4x8xf32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

// Reductions over other axes are other kernels.
// CHECK-LABEL: @two_axes
// CHECK: }) {axes = array<i64: 1>}
// CHECK: }) {axes = array<i64: 0>}
func.func @two_axes(%x: tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<1x1xf32>) {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "migraphx.reduce_max"(%0) {axes = array<i64: 0>} : (tensor<4x1xf32>) -> tensor<1x1xf32>
  return %0, %1 : tensor<4x1xf32>, tensor<1x1xf32>
}

// -----

// No cycle: the concat lies between two ops that would otherwise be one kernel.
// CHECK-LABEL: @cycle
// CHECK: %[[A:.*]] = "migraphx.pointwise"(%arg0)
// CHECK: %[[C:.*]] = "migraphx.concat"(%[[A]], %[[A]])
// CHECK: %[[S:.*]] = "migraphx.slice"(%[[C]])
// CHECK: "migraphx.pointwise"(%[[A]], %[[S]])
func.func @cycle(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.concat"(%0, %0) {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %2 = "migraphx.slice"(%1) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 3>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.add"(%0, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// -----

// Nor one through a kernel with ops on both sides of another's first: the dot takes the first sum,
// the second one needs the dot by way of the transpose.
// CHECK-LABEL: @cycle_through_kernel
// CHECK: %[[R:.*]] = "migraphx.pointwise"(%arg2)
// CHECK: %[[D:.*]]:2 = "migraphx.group"(%arg0, %arg1, %[[R]])
// CHECK: "migraphx.group"(%[[D]]#0, %[[R]]) ({
// CHECK: migraphx.transpose
// CHECK: migraphx.add
func.func @cycle_through_kernel(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = "migraphx.dot"(%x, %y) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "migraphx.relu"(%z) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "migraphx.add"(%0, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "migraphx.add"(%1, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Run-time dims: one kernel; a broadcast to them stays outside, its other operand is needed.
// CHECK-LABEL: @dynamic
// CHECK-NEXT: %[[B:.*]] = "migraphx.multibroadcast"(%arg1, %arg0)
// CHECK-NEXT: "migraphx.pointwise"(%arg0, %[[B]]) ({
// CHECK: migraphx.add
// CHECK: migraphx.relu
func.func @dynamic(%x: tensor<?x4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %0 = "migraphx.multibroadcast"(%b, %x) : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = "migraphx.add"(%x, %0) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = "migraphx.relu"(%1) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// A gather runs alone: what follows is a kernel of its own.
// CHECK-LABEL: @gather
// CHECK-NEXT: %[[G:.*]] = "migraphx.group"(%arg0, %arg1) ({
// CHECK: }) {tag = "gather"}
// CHECK-NEXT: "migraphx.pointwise"(%[[G]])
func.func @gather(%x: tensor<9x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %1 = "migraphx.relu"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// Integers made of dims and literals stay on the host; those made of data do not.
// CHECK-LABEL: @host
// CHECK-NOT: migraphx.pointwise
// CHECK: "migraphx.mul"({{.*}}) : (tensor<2xi64>
// CHECK: %[[K:.*]] = "migraphx.pointwise"(%arg1
// CHECK: return
func.func @host(%x: tensor<?x4xf32>, %y: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
  %l = "migraphx.literal"() {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %d = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 2 : i64} : (tensor<?x4xf32>) -> tensor<2xi64>
  %0 = "migraphx.mul"(%d, %l) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %1 = "migraphx.mul"(%y, %l) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return %0, %1 : tensor<2xi64>, tensor<2xi64>
}

// -----

// Near misses: nothing to fuse, no elements, a kernel that is there already.
// CHECK-LABEL: @views
// CHECK-NEXT: %[[V:.*]] = "migraphx.reshape"(%arg0)
// CHECK-NEXT: return %[[V]]
func.func @views(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// CHECK-LABEL: @empty
// CHECK-NEXT: %[[V:.*]] = "migraphx.relu"(%arg0)
// CHECK-NEXT: return %[[V]]
func.func @empty(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
  %0 = "migraphx.relu"(%x) : (tensor<0x3xf32>) -> tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}

// -----

// The reshape in between moves behind both.
// CHECK-LABEL: @reshape_between
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"(%arg0) ({
// CHECK: "migraphx.relu"({{.*}}) : (tensor<2x3xf32>)
// CHECK-NEXT: "migraphx.tanh"({{.*}}) : (tensor<2x3xf32>)
// CHECK: %[[R:.*]] = "migraphx.reshape"(%[[K]])
// CHECK-NEXT: return %[[R]]
func.func @reshape_between(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %0 = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %2 = "migraphx.tanh"(%1) : (tensor<6xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

// -----

// Another space of elements: what is read elsewhere is reshaped between two kernels.
// CHECK-LABEL: @reshape_used
// CHECK: migraphx.pointwise
// CHECK: migraphx.reshape
// CHECK: migraphx.pointwise
func.func @reshape_used(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %2 = "migraphx.tanh"(%1) : (tensor<6xf32>) -> tensor<6xf32>
  return %2, %1 : tensor<6xf32>, tensor<6xf32>
}

// -----

// A broadcast from outside of a loop is an operand of the kernel inside, one of the body's own goes in.
// CHECK-LABEL: @broadcast_outside
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%arg1)
// CHECK: migraphx.loop
// CHECK: ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<i1>, %[[V:.*]]: tensor<2x3xf32>):
// CHECK-NEXT: "migraphx.pointwise"(%[[V]], %[[B]], %arg1) ({
// CHECK: "migraphx.multibroadcast"({{.*}}) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
func.func @broadcast_outside(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
  %b = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %n = "migraphx.literal"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
  %c = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %g: tensor<i1>, %v: tensor<2x3xf32>):
    %1 = "migraphx.add"(%v, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
    %3 = "migraphx.mul"(%1, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "migraphx.yield"(%g, %3) : (tensor<i1>, tensor<2x3xf32>) -> ()
  }) : (tensor<i64>, tensor<i1>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
