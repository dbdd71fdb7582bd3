// RUN: mgx-opt %s --mgx-split-reduce --split-input-file | filecheck %s

// CHECK-LABEL: @sum
// CHECK-NEXT: %[[X:.*]] = "migraphx.reshape"(%arg0) {{.*}} -> tensor<2x256x256xf32>
// CHECK-NEXT: %[[P:.*]] = "migraphx.reduce_sum"(%[[X]]) {axes = array<i64: 2>} {{.*}} -> tensor<2x256x1xf32>
// CHECK-NEXT: %[[Q:.*]] = "migraphx.reshape"(%[[P]]) {{.*}} -> tensor<2x256xf32>
// CHECK-NEXT: %[[S:.*]] = "migraphx.reduce_sum"(%[[Q]]) {axes = array<i64: 1>}
// CHECK-NEXT: "migraphx.reshape"(%[[S]]) {{.*}} -> tensor<2x1xf32>
func.func @sum(%x: tensor<2x65536xf32>) -> tensor<2x1xf32> {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<2x65536xf32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// -----

// The square is split with its sum; two axes in the middle; the mean of the means.
// CHECK-LABEL: @mean
// CHECK-NEXT: %[[X:.*]] = "migraphx.reshape"(%arg0) {{.*}} -> tensor<1x250x280x3xf32>
// CHECK-NEXT: %[[M:.*]] = "migraphx.mul"(%[[X]], %[[X]])
// CHECK-NEXT: "migraphx.reduce_mean"(%[[M]]) {axes = array<i64: 2>}
// CHECK: "migraphx.reduce_mean"({{.*}}) {axes = array<i64: 1>} {{.*}} -> tensor<1x1x3xf32>
// CHECK: -> tensor<1x1x1x3xf32>
func.func @mean(%x: tensor<1x250x280x3xf32>) -> tensor<1x1x1x3xf32> {
  %0 = "migraphx.mul"(%x, %x) : (tensor<1x250x280x3xf32>, tensor<1x250x280x3xf32>) -> tensor<1x250x280x3xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 1, 2>} : (tensor<1x250x280x3xf32>) -> tensor<1x1x1x3xf32>
  return %1 : tensor<1x1x1x3xf32>
}

// -----

// The parts of a sum in f16 stay in f32.
// CHECK-LABEL: @half
// CHECK: "migraphx.convert"({{.*}}) {target_type = f32}
// CHECK: migraphx.reduce_sum
// CHECK-NOT: migraphx.convert
// CHECK: migraphx.reduce_sum
// CHECK: "migraphx.convert"({{.*}}) {overflow = true, target_type = f16}
func.func @half(%x: tensor<65536xf16>) -> tensor<1xf16> {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<65536xf16>) -> tensor<1xf16>
  return %0 : tensor<1xf16>
}

// -----

// Fewer elements; so many results that they fill the machine; axes apart; integers.
// CHECK-LABEL: @misses
// CHECK-NOT: migraphx.reshape
func.func @misses(%x: tensor<65279xf32>, %y: tensor<65x65536xi8>, %z: tensor<256x2x256xf32>) -> (tensor<1xf32>, tensor<65x1xf32>, tensor<1x2x1xf32>, tensor<1x1xi8>) {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<65279xf32>) -> tensor<1xf32>
  %1 = "migraphx.convert"(%y) {target_type = f32} : (tensor<65x65536xi8>) -> tensor<65x65536xf32>
  %2 = "migraphx.reduce_max"(%1) {axes = array<i64: 1>} : (tensor<65x65536xf32>) -> tensor<65x1xf32>
  %3 = "migraphx.reduce_sum"(%z) {axes = array<i64: 0, 2>} : (tensor<256x2x256xf32>) -> tensor<1x2x1xf32>
  %4 = "migraphx.reduce_sum"(%y) : (tensor<65x65536xi8>) -> tensor<1x1xi8>
  return %0, %2, %3, %4 : tensor<1xf32>, tensor<65x1xf32>, tensor<1x2x1xf32>, tensor<1x1xi8>
}
