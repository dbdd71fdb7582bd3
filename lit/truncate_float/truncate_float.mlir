// RUN: mgx-opt %s --mgx-truncate-float --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-truncate-float='ops=dot float-type=bf16' --split-input-file | filecheck %s --check-prefix=DOT
// RUN: mgx-opt %s --mgx-truncate-float="float-type=bf16 wide-sums=true" --split-input-file | filecheck %s --check-prefix=WIDE

// Each op has its conversions; results keep their types. (Whole numbers, exact in 16 bits.)
// CHECK-LABEL: @ops
// CHECK: %[[F:.*]] = "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: %[[X:.*]] = "migraphx.convert"(%[[F]]) {target_type = f16}
// CHECK: %[[D:.*]] = "migraphx.dot"(%[[X]], %[[X]]) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
// CHECK: %[[B:.*]] = "migraphx.convert"(%[[D]]) {target_type = f32}
// CHECK: %[[Y:.*]] = "migraphx.convert"(%[[B]]) {target_type = f16}
// CHECK: "migraphx.relu"(%[[Y]]) : (tensor<2x2xf16>)
// DOT-LABEL: @ops
// DOT: "migraphx.dot"{{.*}}xbf16>
// DOT: "migraphx.relu"({{.*}}) : (tensor<2x2xf32>)
func.func @ops(%x: tensor<2x2xi32>) -> tensor<2x2xf32> {
  %f = "migraphx.convert"(%x) {target_type = f32} : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %0 = "migraphx.dot"(%f, %f) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "migraphx.relu"(%0) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// Integers, conversions, bits and quantisers stay.
// CHECK-LABEL: @others
// CHECK-NOT: f16
func.func @others(%x: tensor<2xi32>, %s: tensor<2xf32>) -> (tensor<2xi32>, tensor<2xi32>, tensor<2xui8>) {
  %0 = "migraphx.add"(%x, %x) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %f = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xi32>) -> tensor<2xf32>
  %1 = "migraphx.bit_cast"(%f) {target_type = i32} : (tensor<2xf32>) -> tensor<2xi32>
  %2 = "migraphx.quantizelinear"(%f, %s) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xui8>
  return %0, %1, %2 : tensor<2xi32>, tensor<2xi32>, tensor<2xui8>
}

// -----

// Ops of several operands of other types, and several results.
// CHECK-LABEL: @mixed
// CHECK: "migraphx.where"(%arg0, {{.*}}) : (tensor<4xi1>, tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
// CHECK: "migraphx.topk"({{.*}}) {{.*}} -> (tensor<2xf16>, tensor<2xi64>)
func.func @mixed(%c: tensor<4xi1>, %x: tensor<4xi32>) -> (tensor<2xf32>, tensor<2xi64>) {
  %f = "migraphx.convert"(%x) {target_type = f32} : (tensor<4xi32>) -> tensor<4xf32>
  %w = "migraphx.where"(%c, %f, %f) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0, %1 = "migraphx.topk"(%w) {k = 2 : i64, axis = 0 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  return %0, %1 : tensor<2xf32>, tensor<2xi64>
}

// -----

// A sum that a norm reads stays with the norm, and so does the lookup that it sums. A bias does not.
// WIDE-LABEL: @norm
// WIDE: "migraphx.gather"({{.*}}) {{.*}} -> tensor<2x4xf32>
// WIDE: %[[P:.*]] = "migraphx.dot"({{.*}}) : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
// WIDE: "migraphx.add"({{.*}}) : (tensor<2x4xbf16>, tensor<2x4xbf16>)
// WIDE: %[[S:.*]] = "migraphx.add"({{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>)
// WIDE: "migraphx.reduce_mean"(%[[S]]) {{.*}} : (tensor<2x4xf32>) -> tensor<2x1xf32>
// WIDE: "migraphx.relu"({{.*}}) : (tensor<2x1xf32>)
func.func @norm(%ti: tensor<8x4xi32>, %i: tensor<2xi64>, %wi: tensor<4x4xi32>, %bi: tensor<4xi32>) -> tensor<2x1xf32> {
  %t = "migraphx.convert"(%ti) {target_type = f32} : (tensor<8x4xi32>) -> tensor<8x4xf32>
  %w = "migraphx.convert"(%wi) {target_type = f32} : (tensor<4x4xi32>) -> tensor<4x4xf32>
  %b = "migraphx.convert"(%bi) {target_type = f32} : (tensor<4xi32>) -> tensor<4xf32>
  %x = "migraphx.gather"(%t, %i) {axis = 0 : i64} : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 4>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "migraphx.add"(%2, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = "migraphx.reduce_mean"(%3) {axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %5 = "migraphx.relu"(%4) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  return %5 : tensor<2x1xf32>
}

// -----

// An angle, and the sine of it.
// WIDE-LABEL: @angle
// WIDE-NOT: convert
// WIDE: "migraphx.mul"({{.*}}xf32>
// WIDE: "migraphx.sin"({{.*}}xf32>
// WIDE: "migraphx.neg"({{.*}}xbf16>
func.func @angle(%p: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %f = "migraphx.literal"() {value = dense<0.1> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "migraphx.multibroadcast"(%p) {out_lens = array<i64: 8, 4>} : (tensor<8x1xf32>) -> tensor<8x4xf32>
  %1 = "migraphx.multibroadcast"(%f) {out_lens = array<i64: 8, 4>} : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = "migraphx.mul"(%0, %1) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "migraphx.sin"(%2) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = "migraphx.neg"(%3) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// -----

// Rows that are joined to a result.
// WIDE-LABEL: @rows
// WIDE: "migraphx.neg"({{.*}}xbf16>
// WIDE: "migraphx.concat"(%arg0, {{.*}}xf32>
func.func @rows(%old: tensor<8x4xf32>, %x: tensor<1x4xf32>) -> tensor<9x4xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = "migraphx.concat"(%old, %0) {axis = 0 : i64} : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>
  return %1 : tensor<9x4xf32>
}

// -----

// Weights of a norm are multiplied in f32.
// WIDE-LABEL: @norm
// WIDE-NOT: bf16
// WIDE: "migraphx.mul"({{.*}}xf32>
// WIDE-NOT: bf16
// WIDE: return
func.func @norm(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %g = "migraphx.literal"() {value = dense<0.1> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "migraphx.add"(%x, %y) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 8, 4>} : (tensor<8x1xf32>) -> tensor<8x4xf32>
  %3 = "migraphx.sub"(%0, %2) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = "migraphx.multibroadcast"(%g) {out_lens = array<i64: 8, 4>} : (tensor<4xf32>) -> tensor<8x4xf32>
  %5 = "migraphx.mul"(%3, %4) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}
