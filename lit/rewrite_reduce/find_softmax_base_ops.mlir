// RUN: mgx-opt %s --mgx-rewrite-reduce --split-input-file | filecheck %s

// CHECK-LABEL: @half
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: "migraphx.reduce_max"(%[[X]])
// CHECK: %[[E:.*]] = "migraphx.exp"{{.*}} -> tensor<4x8xf32>
// CHECK: "migraphx.reduce_sum"(%[[E]])
// CHECK: %[[Y:.*]] = "migraphx.div"(%[[E]],
// CHECK: "migraphx.convert"(%[[Y]]) {target_type = f16}
func.func @half(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %0 = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4x1xf16>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf16>) -> tensor<4x8xf16>
  %2 = "migraphx.sub"(%x, %1) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %3 = "migraphx.exp"(%2) : (tensor<4x8xf16>) -> tensor<4x8xf16>
  %4 = "migraphx.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4x1xf16>
  %5 = "migraphx.multibroadcast"(%4) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf16>) -> tensor<4x8xf16>
  %6 = "migraphx.div"(%3, %5) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  return %6 : tensor<4x8xf16>
}

// -----

// f32 has nothing wider.
// CHECK-LABEL: @f32
// CHECK-NOT: migraphx.convert
func.func @f32(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = "migraphx.sub"(%x, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "migraphx.exp"(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "migraphx.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %5 = "migraphx.multibroadcast"(%4) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %6 = "migraphx.div"(%3, %5) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}

// -----

// The maximum is along another axis than the sum.
// CHECK-LABEL: @axes
// CHECK-NOT: migraphx.convert
func.func @axes(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %0 = "migraphx.reduce_max"(%x) {axes = array<i64: 0>} : (tensor<4x8xf16>) -> tensor<1x8xf16>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 4, 8>} : (tensor<1x8xf16>) -> tensor<4x8xf16>
  %2 = "migraphx.sub"(%x, %1) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %3 = "migraphx.exp"(%2) : (tensor<4x8xf16>) -> tensor<4x8xf16>
  %4 = "migraphx.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4x1xf16>
  %5 = "migraphx.multibroadcast"(%4) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf16>) -> tensor<4x8xf16>
  %6 = "migraphx.div"(%3, %5) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  return %6 : tensor<4x8xf16>
}

// -----

// The exponentials are a result too.
// CHECK-LABEL: @used
// CHECK-NOT: migraphx.convert
func.func @used(%x: tensor<4x8xf16>) -> (tensor<4x8xf16>, tensor<4x8xf16>) {
  %0 = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4x1xf16>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf16>) -> tensor<4x8xf16>
  %2 = "migraphx.sub"(%x, %1) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %3 = "migraphx.exp"(%2) : (tensor<4x8xf16>) -> tensor<4x8xf16>
  %4 = "migraphx.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4x1xf16>
  %5 = "migraphx.multibroadcast"(%4) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf16>) -> tensor<4x8xf16>
  %6 = "migraphx.div"(%3, %5) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  return %6, %3 : tensor<4x8xf16>, tensor<4x8xf16>
}
