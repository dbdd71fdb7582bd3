// RUN: mgx-opt %s --mgx-rewrite-reduce=mean --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-reduce --split-input-file | filecheck %s --check-prefix=OFF

// CHECK-LABEL: @f32
// CHECK-NEXT: %[[S:.*]] = "migraphx.reduce_sum"(%arg0) {axes = array<i64: 0, 2>}
// CHECK-NEXT: %[[C:.*]] = "migraphx.literal"() {value = dense<1.200000e+01>
// CHECK-NEXT: %[[N:.*]] = "migraphx.multibroadcast"(%[[C]])
// CHECK-NEXT: "migraphx.div"(%[[S]], %[[N]])
// OFF-LABEL: @f32
// OFF-NEXT: migraphx.reduce_mean
func.func @f32(%x: tensor<3x2x4xf32>) -> tensor<1x2x1xf32> {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 0, 2>} : (tensor<3x2x4xf32>) -> tensor<1x2x1xf32>
  return %0 : tensor<1x2x1xf32>
}

// -----

// Sums of 16-bit floats are in f32, of integers in 64 bits.
// CHECK-LABEL: @narrow
// CHECK: "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: "migraphx.convert"{{.*}} {target_type = f16}
// CHECK: "migraphx.convert"(%arg1) {target_type = i64}
// CHECK: "migraphx.convert"{{.*}} {target_type = i8}
// CHECK: "migraphx.convert"(%arg2) {target_type = ui64}
// CHECK: "migraphx.convert"{{.*}} {target_type = ui8}
func.func @narrow(%x: tensor<3x4xf16>, %y: tensor<3x4xi8>, %z: tensor<3x4xui8>) -> (tensor<1x1xf16>, tensor<3x1xi8>, tensor<3x1xui8>) {
  %0 = "migraphx.reduce_mean"(%x) : (tensor<3x4xf16>) -> tensor<1x1xf16>
  %1 = "migraphx.reduce_mean"(%y) {axes = array<i64: -1>} : (tensor<3x4xi8>) -> tensor<3x1xi8>
  %2 = "migraphx.reduce_mean"(%z) {axes = array<i64: -1>} : (tensor<3x4xui8>) -> tensor<3x1xui8>
  return %0, %1, %2 : tensor<1x1xf16>, tensor<3x1xi8>, tensor<3x1xui8>
}

// -----

// How many there are is known at run time only; the mean of nothing is NaN, or 0 for integers.
// CHECK-LABEL: @misses
// CHECK-NEXT: migraphx.reduce_mean
// CHECK-NEXT: migraphx.reduce_mean
func.func @misses(%x: tensor<3x?xf32>, %y: tensor<3x0xi32>) -> (tensor<3x1xf32>, tensor<3x1xi32>) {
  %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 1>} : (tensor<3x?xf32>) -> tensor<3x1xf32>
  %1 = "migraphx.reduce_mean"(%y) {axes = array<i64: 1>} : (tensor<3x0xi32>) -> tensor<3x1xi32>
  return %0, %1 : tensor<3x1xf32>, tensor<3x1xi32>
}
