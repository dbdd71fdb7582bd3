// RUN: mgx-opt %s --mgx-fuse-attention="flash=true fast-math=true" --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-attention="flash=true" --split-input-file | filecheck %s --check-prefix=EXACT

// A mask by where becomes one that is added, as small as its condition.
// CHECK-LABEL: @chosen
// CHECK: %[[M:.*]] = "migraphx.where"({{.*}}) : (tensor<1x6xi1>, tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>
// CHECK: "migraphx.group"({{.*}}%[[M]]{{[,)]}}
// CHECK: %[[W:.*]] = "migraphx.multibroadcast"(%{{.*}}) {{.*}} : (tensor<1x6xf32>) -> tensor<2x4x6xf32>
// CHECK: %[[S:.*]] = "migraphx.dot"
// CHECK: "migraphx.add"(%[[S]], %[[W]])
// CHECK: tag = "attention"
// EXACT-LABEL: @chosen
// EXACT-NOT: migraphx.group
func.func @chosen(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32>, %v: tensor<2x6x3xf32>, %m: tensor<1x6xi1>) -> tensor<2x4x3xf32> {
  %l = "migraphx.literal"() {value = dense<0xFF800000> : tensor<1xf32>} : () -> tensor<1xf32>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 2, 4, 6>} : (tensor<1xf32>) -> tensor<2x4x6xf32>
  %s = "migraphx.dot"(%q, %k) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %mw = "migraphx.multibroadcast"(%m) {out_lens = array<i64: 2, 4, 6>} : (tensor<1x6xi1>) -> tensor<2x4x6xi1>
  %sm = "migraphx.where"(%mw, %s, %lw) : (tensor<2x4x6xi1>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%sm) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// A constant condition, the other way round, of f16: the mask is a constant of f32, whose -1e38
// stands for the lowest of f16, and the softmax is in f32.
// CHECK-LABEL: @constant
// CHECK: dense<{{\[\[}}-9.99999968E+37, 0.000000e+00], [0.000000e+00, 0.000000e+00]]> : tensor<2x2xf32>
// CHECK: "migraphx.group"
// CHECK: "migraphx.convert"({{.*}}) {target_type = f32}
// CHECK: "migraphx.add"
// CHECK-NEXT: "migraphx.softmax"
// CHECK-NEXT: "migraphx.convert"({{.*}}) {target_type = f16}
// CHECK-NEXT: "migraphx.dot"
func.func @constant(%q: tensor<3x2x8xf16>, %k: tensor<3x8x2xf16>, %v: tensor<3x2x4xf16>) -> tensor<3x2x4xf16> {
  %m = "migraphx.literal"() {value = dense<[[true, false], [false, false]]> : tensor<2x2xi1>} : () -> tensor<2x2xi1>
  %l = "migraphx.literal"() {value = dense<-65504.0> : tensor<1xf16>} : () -> tensor<1xf16>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 3, 2, 2>} : (tensor<1xf16>) -> tensor<3x2x2xf16>
  %s = "migraphx.dot"(%q, %k) : (tensor<3x2x8xf16>, tensor<3x8x2xf16>) -> tensor<3x2x2xf16>
  %mw = "migraphx.multibroadcast"(%m) {out_lens = array<i64: 3, 2, 2>} : (tensor<2x2xi1>) -> tensor<3x2x2xi1>
  %sm = "migraphx.where"(%mw, %lw, %s) : (tensor<3x2x2xi1>, tensor<3x2x2xf16>, tensor<3x2x2xf16>) -> tensor<3x2x2xf16>
  %p = "migraphx.softmax"(%sm) {axis = 2 : i64} : (tensor<3x2x2xf16>) -> tensor<3x2x2xf16>
  %o = "migraphx.dot"(%p, %v) : (tensor<3x2x2xf16>, tensor<3x2x4xf16>) -> tensor<3x2x4xf16>
  return %o : tensor<3x2x4xf16>
}

// -----

// A mask that is added behind: one mask of both, [5, 4, 6] of [4, 6] and [5, 1, 6].
// CHECK-LABEL: @two
// CHECK: "migraphx.max"
// CHECK: %[[M:.*]] = "migraphx.add"({{.*}}) : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
// CHECK: "migraphx.group"({{.*}}%[[M]]{{[,)]}}
// CHECK: "migraphx.add"
// CHECK-NEXT: "migraphx.softmax"
func.func @two(%q: tensor<5x4x8xf32>, %k: tensor<5x8x6xf32>, %v: tensor<5x6x3xf32>, %m: tensor<4x6xi1>, %b: tensor<5x1x6xf32>) -> tensor<5x4x3xf32> {
  %l = "migraphx.literal"() {value = dense<0xFF7FFFFF> : tensor<1xf32>} : () -> tensor<1xf32>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 5, 4, 6>} : (tensor<1xf32>) -> tensor<5x4x6xf32>
  %s = "migraphx.dot"(%q, %k) : (tensor<5x4x8xf32>, tensor<5x8x6xf32>) -> tensor<5x4x6xf32>
  %mw = "migraphx.multibroadcast"(%m) {out_lens = array<i64: 5, 4, 6>} : (tensor<4x6xi1>) -> tensor<5x4x6xi1>
  %sm = "migraphx.where"(%mw, %s, %lw) : (tensor<5x4x6xi1>, tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  %bw = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 5, 4, 6>} : (tensor<5x1x6xf32>) -> tensor<5x4x6xf32>
  %sb = "migraphx.add"(%sm, %bw) : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  %p = "migraphx.softmax"(%sb) {axis = 2 : i64} : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<5x4x6xf32>, tensor<5x6x3xf32>) -> tensor<5x4x3xf32>
  return %o : tensor<5x4x3xf32>
}

// -----

// Near misses. The number is a score like others: where puts 0.
// CHECK-LABEL: @zero
// CHECK-NOT: migraphx.group
func.func @zero(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32>, %v: tensor<2x6x3xf32>, %m: tensor<2x4x6xi1>) -> tensor<2x4x3xf32> {
  %l = "migraphx.literal"() {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 2, 4, 6>} : (tensor<1xf32>) -> tensor<2x4x6xf32>
  %s = "migraphx.dot"(%q, %k) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %sm = "migraphx.where"(%m, %s, %lw) : (tensor<2x4x6xi1>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%sm) {axis = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// Scores are more than scaled ahead of the mask; and a softmax without values after it.
// CHECK-LABEL: @capped
// CHECK: "migraphx.where"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>)
// CHECK-NOT: migraphx.group
// CHECK-NOT: migraphx.add
func.func @capped(%q: tensor<4x8xf32>, %k: tensor<8x6xf32>, %v: tensor<6x3xf32>, %m: tensor<4x6xi1>) -> (tensor<4x3xf32>, tensor<4x6xf32>) {
  %l = "migraphx.literal"() {value = dense<0xFF800000> : tensor<1xf32>} : () -> tensor<1xf32>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 4, 6>} : (tensor<1xf32>) -> tensor<4x6xf32>
  %s = "migraphx.dot"(%q, %k) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %c = "migraphx.tanh"(%s) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %sm = "migraphx.where"(%m, %c, %lw) : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = "migraphx.softmax"(%sm) {axis = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>
  %s2 = "migraphx.dot"(%q, %k) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %sm2 = "migraphx.where"(%m, %s2, %lw) : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %p2 = "migraphx.softmax"(%sm2) {axis = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %o, %p2 : tensor<4x3xf32>, tensor<4x6xf32>
}
