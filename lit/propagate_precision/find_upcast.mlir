// RUN: mgx-opt %s --mgx-propagate-precision --split-input-file | filecheck %s

// The convert moves up to the dot, past a sum with a constant and a mean.
// CHECK-LABEL: @chain
// CHECK: %[[D:.*]] = "migraphx.dot"
// CHECK: %[[X:.*]] = "migraphx.convert"(%[[D]]) {target_type = f32}
// CHECK: %[[C:.*]] = "migraphx.convert"({{.*}}) {target_type = f32}
// CHECK: %[[A:.*]] = "migraphx.add"(%[[X]], %[[C]]) : (tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK: %[[M:.*]] = "migraphx.reduce_mean"(%[[A]]) {{.*}} -> tensor<4x1xf32>
// CHECK: "migraphx.sigmoid"(%[[M]])
func.func @chain(%x: tensor<4x4xf16>, %w: tensor<4x8xf16>) -> tensor<4x1xf16> {
  %c = "migraphx.literal"() {value = dense<3.0> : tensor<4x8xf16>} : () -> tensor<4x8xf16>
  %0 = "migraphx.dot"(%x, %w) : (tensor<4x4xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %1 = "migraphx.add"(%0, %c) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %2 = "migraphx.reduce_mean"(%1) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4x1xf16>
  %3 = "migraphx.convert"(%2) {target_type = f32} : (tensor<4x1xf16>) -> tensor<4x1xf32>
  %4 = "migraphx.sigmoid"(%3) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = "migraphx.convert"(%4) {target_type = f16} : (tensor<4x1xf32>) -> tensor<4x1xf16>
  return %5 : tensor<4x1xf16>
}

// -----

// Two tensors would be converted; the sum is a result in 16 bits too; floor has steps; integers
// would not wrap; f64 is slow.
// CHECK-LABEL: @misses
// CHECK-NEXT: migraphx.add
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.neg
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.floor
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.neg
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.neg
// CHECK-NEXT: migraphx.convert
func.func @misses(%x: tensor<8xf16>, %y: tensor<8xf16>, %i: tensor<8xi8>, %z: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xi32>, tensor<8xf64>) {
  %0 = "migraphx.add"(%x, %y) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<8xf16>) -> tensor<8xf32>
  %2 = "migraphx.neg"(%x) : (tensor<8xf16>) -> tensor<8xf16>
  %3 = "migraphx.convert"(%2) {target_type = f32} : (tensor<8xf16>) -> tensor<8xf32>
  %4 = "migraphx.floor"(%x) : (tensor<8xf16>) -> tensor<8xf16>
  %5 = "migraphx.convert"(%4) {target_type = f32} : (tensor<8xf16>) -> tensor<8xf32>
  %6 = "migraphx.neg"(%i) : (tensor<8xi8>) -> tensor<8xi8>
  %7 = "migraphx.convert"(%6) {target_type = i32} : (tensor<8xi8>) -> tensor<8xi32>
  %8 = "migraphx.neg"(%z) : (tensor<8xf32>) -> tensor<8xf32>
  %9 = "migraphx.convert"(%8) {target_type = f64} : (tensor<8xf32>) -> tensor<8xf64>
  return %1, %2, %3, %5, %7, %9 : tensor<8xf32>, tensor<8xf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xi32>, tensor<8xf64>
}
