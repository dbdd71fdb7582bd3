// RUN: mgx-opt %s --mgx-fuse-reduce --split-input-file | filecheck %s

// The reduction takes the dims ahead of the reshape and joins the kernel.
// CHECK-LABEL: @joined
// CHECK-NEXT: %[[K:.*]] = "migraphx.fused_reduce"(%arg0) ({
// CHECK: migraphx.neg
// CHECK-NEXT: "migraphx.reduce_sum"({{.*}}) {axes = array<i64: 1, 2>}
// CHECK: %[[R:.*]] = "migraphx.reshape"(%[[K]]) {{.*}} -> tensor<2x1xf32>
// CHECK-NEXT: return %[[R]]
func.func @joined(%x: tensor<2x3x4xf32>) -> tensor<2x1xf32> {
  %n = "migraphx.neg"(%x) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %r = "migraphx.reshape"(%n) {dims = array<i64: 2, 12>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %o = "migraphx.reduce_sum"(%r) {axes = array<i64: 1>} : (tensor<2x12xf32>) -> tensor<2x1xf32>
  return %o : tensor<2x1xf32>
}

// -----

// Split dims that are reduced together.
// CHECK-LABEL: @split
// CHECK: "migraphx.reduce_max"({{.*}}) {axes = array<i64: 0>}
// CHECK: "migraphx.reshape"({{.*}}) {{.*}} -> tensor<1x1x3xi32>
func.func @split(%x: tensor<4x3xi32>) -> tensor<1x1x3xi32> {
  %n = "migraphx.neg"(%x) : (tensor<4x3xi32>) -> tensor<4x3xi32>
  %r = "migraphx.reshape"(%n) {dims = array<i64: 2, 2, 3>} : (tensor<4x3xi32>) -> tensor<2x2x3xi32>
  %o = "migraphx.reduce_max"(%r) {axes = array<i64: 0, 1>} : (tensor<2x2x3xi32>) -> tensor<1x1x3xi32>
  return %o : tensor<1x1x3xi32>
}

// -----

// Near misses. A part of what was one dim.
// CHECK-LABEL: @part
// CHECK: migraphx.pointwise
// CHECK: migraphx.{{reshape|unsqueeze}}
// CHECK: migraphx.fused_reduce
func.func @part(%x: tensor<4x3xf32>) -> tensor<2x1x3xf32> {
  %n = "migraphx.neg"(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = "migraphx.reshape"(%n) {dims = array<i64: 2, 2, 3>} : (tensor<4x3xf32>) -> tensor<2x2x3xf32>
  %o = "migraphx.reduce_sum"(%r) {axes = array<i64: 1>} : (tensor<2x2x3xf32>) -> tensor<2x1x3xf32>
  return %o : tensor<2x1x3xf32>
}

// -----

// The reshape is read elsewhere too.
// CHECK-LABEL: @used
// CHECK: migraphx.pointwise
// CHECK: migraphx.{{reshape|unsqueeze}}
// CHECK: migraphx.fused_reduce
func.func @used(%x: tensor<2x3x4xf32>) -> (tensor<2x1xf32>, tensor<2x12xf32>) {
  %n = "migraphx.neg"(%x) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %r = "migraphx.reshape"(%n) {dims = array<i64: 2, 12>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %o = "migraphx.reduce_sum"(%r) {axes = array<i64: 1>} : (tensor<2x12xf32>) -> tensor<2x1xf32>
  return %o, %r : tensor<2x1xf32>, tensor<2x12xf32>
}

// -----

// Nothing is computed ahead of it.
// CHECK-LABEL: @argument
// CHECK-NEXT: %[[R:.*]] = "migraphx.reshape"(%arg0)
// CHECK-NEXT: "migraphx.fused_reduce"(%[[R]])
func.func @argument(%x: tensor<2x3x4xf32>) -> tensor<2x1xf32> {
  %r = "migraphx.reshape"(%x) {dims = array<i64: 2, 12>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %o = "migraphx.reduce_sum"(%r) {axes = array<i64: 1>} : (tensor<2x12xf32>) -> tensor<2x1xf32>
  return %o : tensor<2x1xf32>
}
