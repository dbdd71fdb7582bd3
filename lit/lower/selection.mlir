// RUN: mgx-opt --mgx-lower-to-linalg=arch=generic --split-input-file %s | filecheck %s

// One round per chosen box: the best key, then what overlaps it drops out.
// CHECK-LABEL: @main(
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (!hal.buffer_view, !hal.buffer_view, !hal.buffer_view)
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.divf
// CHECK: scf.yield
// CHECK: "iree_linalg_ext.scan"
// CHECK: tensor.empty(%{{.*}}) : tensor<?x3xi64>
func.func @main(%b: tensor<1x6x4xf32>, %s: tensor<1x2x6xf32>, %n: tensor<1xi64>) -> tensor<?x3xi64> {
  %0 = "migraphx.nonmaxsuppression"(%b, %s, %n) {center_point_box = false, use_dyn_output = false, padded = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<1xi64>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// -----

// Without a number of boxes there are none.
// CHECK-LABEL: @main(
// CHECK-NOT: scf.for
// CHECK: tensor.empty() : tensor<0x3xi64>
func.func @main(%b: tensor<1x6x4xf32>, %s: tensor<1x2x6xf32>) -> tensor<?x3xi64> {
  %0 = "migraphx.nonmaxsuppression"(%b, %s) {center_point_box = false, use_dyn_output = false, padded = false, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// -----

// Distinct elements are found by comparing all pairs; nothing is sorted.
// CHECK-LABEL: @main(
// CHECK-NOT: iree_linalg_ext.sort
// CHECK: util.optimization_barrier
// CHECK: tensor.extract %{{.*}} : tensor<i64>
// CHECK: tensor.empty(%{{.*}}) : tensor<?xf32>
func.func @main(%x: tensor<6xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>) {
  %0:4 = "migraphx.unique"(%x) {sorted = true} : (tensor<6xf32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<?xf32>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>
}

// -----

// Two samples per axis and bin: loops of a known count.
// CHECK-LABEL: @main(
// CHECK: linalg.generic
// CHECK: scf.for
// CHECK: scf.for
// CHECK: math.floor
// CHECK: tensor.extract %arg0
func.func @main(%x: tensor<1x3x8x8xf32>, %r: tensor<5x4xf32>, %b: tensor<5xi64>) -> tensor<5x3x2x2xf32> {
  %0 = "migraphx.roialign"(%x, %r, %b) {coordinate_transformation_mode = "half_pixel", mode = "average", output_height = 2 : i64, output_width = 2 : i64, sampling_ratio = 2 : i64, spatial_scale = 1.0 : f64} : (tensor<1x3x8x8xf32>, tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x3x2x2xf32>
  return %0 : tensor<5x3x2x2xf32>
}

// -----

// 8-bit integers of either sign are widened by their own sign.
// CHECK-LABEL: @main(
// CHECK: arith.extui %{{.*}} : i8 to i32
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK: linalg.matmul
func.func @main(%a: tensor<3x4xui8>, %b: tensor<4x5xi8>) -> tensor<3x5xi32> {
  %0 = "migraphx.quant_dot"(%a, %b) : (tensor<3x4xui8>, tensor<4x5xi8>) -> tensor<3x5xi32>
  return %0 : tensor<3x5xi32>
}
