// RUN: mgx-opt %s --mgx-rewrite-resize --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-resize=affine-only --split-input-file | filecheck %s --check-prefix=AFFINE

// Two axes: two gathers and one sum for each.
// CHECK-LABEL: @bilinear
// CHECK-NOT: migraphx.resize
// CHECK: "migraphx.gather"(%arg0, %{{.*}}) {axis = 2 : i64}
// CHECK: "migraphx.gather"(%arg0, %{{.*}}) {axis = 2 : i64}
// CHECK: %[[R:.*]] = "migraphx.add"
// CHECK: "migraphx.gather"(%[[R]], %{{.*}}) {axis = 3 : i64}
// CHECK: "migraphx.gather"(%[[R]], %{{.*}}) {axis = 3 : i64}
// CHECK: %[[Y:.*]] = "migraphx.add"
// CHECK-NEXT: return %[[Y]]
// AFFINE-LABEL: @bilinear
// AFFINE-NEXT: migraphx.resize
func.func @bilinear(%x: tensor<1x2x4x5xf32>) -> tensor<1x2x8x8xf32> {
  %0 = "migraphx.resize"(%x) {sizes = array<i64: 1, 2, 8, 8>, mode = "linear", coordinate_transformation_mode = "half_pixel"} : (tensor<1x2x4x5xf32>) -> tensor<1x2x8x8xf32>
  return %0 : tensor<1x2x8x8xf32>
}

// -----

// 16 bits are blended in f32.
// CHECK-LABEL: @half
// CHECK: "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: migraphx.gather
// CHECK: "migraphx.convert"{{.*}} {target_type = f16}
func.func @half(%x: tensor<2x4xf16>) -> tensor<2x7xf16> {
  %0 = "migraphx.resize"(%x) {sizes = array<i64: 2, 7>, mode = "linear", coordinate_transformation_mode = "align_corners"} : (tensor<2x4xf16>) -> tensor<2x7xf16>
  return %0 : tensor<2x7xf16>
}

// -----

// More than two weights for each element; integers, which truncate.
// CHECK-LABEL: @misses
// CHECK-NEXT: migraphx.resize
// CHECK-NEXT: migraphx.resize
func.func @misses(%x: tensor<2x8xf32>, %y: tensor<2x4xi32>) -> (tensor<2x3xf32>, tensor<2x7xi32>) {
  %0 = "migraphx.resize"(%x) {sizes = array<i64: 2, 3>, mode = "linear", antialias = true} : (tensor<2x8xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.resize"(%y) {sizes = array<i64: 2, 7>, mode = "linear"} : (tensor<2x4xi32>) -> tensor<2x7xi32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x7xi32>
}
