// RUN: mgx-opt --mgx-lower-to-linalg=vector-kernels=false --split-input-file %s | filecheck %s

// Pairs of value and index; ties go to the lower index whatever the order of the reduction.
// CHECK-LABEL: @main(
// CHECK: arith.constant 0xFF800000 : f32
// CHECK: arith.constant 9223372036854775807 : i64
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf une
// CHECK: arith.cmpi slt
func.func @main(%x: tensor<2x5xf32>) -> tensor<2x1xi64> {
  %0 = "migraphx.argmax"(%x) {axis = 1 : i64, select_last_index = false} : (tensor<2x5xf32>) -> tensor<2x1xi64>
  return %0 : tensor<2x1xi64>
}

// -----

// Unsigned integers compare unsigned, and have no NaN.
// CHECK-LABEL: @main(
// CHECK: arith.cmpi ult
// CHECK-NOT: cmpf
// CHECK: arith.cmpi sgt
func.func @main(%x: tensor<2x5xui8>) -> tensor<2x1xi64> {
  %0 = "migraphx.argmin"(%x) {axis = 1 : i64, select_last_index = true} : (tensor<2x5xui8>) -> tensor<2x1xi64>
  return %0 : tensor<2x1xi64>
}

// -----

// Floats sort as integer keys: NaN the largest, -0 as 0.
// CHECK-LABEL: @main(
// CHECK: arith.addf
// CHECK: arith.bitcast
// CHECK: arith.shrsi
// CHECK: arith.xori
// CHECK: arith.select
// CHECK: "iree_linalg_ext.topk"
// CHECK: arith.cmpi sgt, %{{.*}}, %{{.*}} : i32
// CHECK: dimension = 1 : i64
// CHECK: tensor.extract %arg0
func.func @main(%x: tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 3 : i64, axis = 1 : i64, largest = true} : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi64>
}

// -----

// Nothing asked for, nothing sorted.
// CHECK-LABEL: @main(
// CHECK-NOT: topk
// CHECK: tensor.empty() : tensor<2x0xf32>
func.func @main(%x: tensor<2x5xf32>) -> (tensor<2x0xf32>, tensor<2x0xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 0 : i64, axis = 1 : i64, largest = true} : (tensor<2x5xf32>) -> (tensor<2x0xf32>, tensor<2x0xi64>)
  return %0#0, %0#1 : tensor<2x0xf32>, tensor<2x0xi64>
}

// -----

// A running sum of 16-bit floats is kept in f32.
// CHECK-LABEL: @main(
// CHECK: arith.extf
// CHECK: "iree_linalg_ext.scan"
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: dimension = 0 : i64, inclusive = false
// CHECK: arith.truncf
func.func @main(%x: tensor<4x2xf16>) -> tensor<4x2xf16> {
  %0 = "migraphx.prefix_scan_sum"(%x) {axis = 0 : i64, exclusive = true, reverse = false} : (tensor<4x2xf16>) -> tensor<4x2xf16>
  return %0 : tensor<4x2xf16>
}

// -----

// Running back: flipped before and after.
// CHECK-LABEL: @main(
// CHECK: tensor.extract %arg0
// CHECK: "iree_linalg_ext.scan"
// CHECK: arith.addi
// CHECK: tensor.extract
func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "migraphx.prefix_scan_sum"(%x) {axis = 0 : i64, exclusive = false, reverse = true} : (tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
