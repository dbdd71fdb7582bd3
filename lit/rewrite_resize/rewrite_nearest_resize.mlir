// RUN: mgx-opt %s --mgx-rewrite-resize --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-resize=affine-only --split-input-file | filecheck %s --check-prefix=AFFINE

// CHECK-LABEL: @twice
// CHECK-NEXT: %[[S:.*]] = "migraphx.reshape"(%arg0) {{.*}} -> tensor<1x3x4x1x5x1xf32>
// CHECK-NEXT: %[[B:.*]] = "migraphx.multibroadcast"(%[[S]]) {{.*}} -> tensor<1x3x4x2x5x3xf32>
// CHECK-NEXT: "migraphx.reshape"(%[[B]]) {{.*}} -> tensor<1x3x8x15xf32>
// AFFINE-LABEL: @twice
// AFFINE-NOT: migraphx.resize
// AFFINE: return
func.func @twice(%x: tensor<1x3x4x5xf32>) -> tensor<1x3x8x15xf32> {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 1.0, 1.0, 2.0, 3.0>, mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"} : (tensor<1x3x4x5xf32>) -> tensor<1x3x8x15xf32>
  return %0 : tensor<1x3x8x15xf32>
}

// -----

// Half pixels rounded to the nearest: the same repetition.
// CHECK-LABEL: @half_pixel
// CHECK: migraphx.multibroadcast
// CHECK-NOT: migraphx.resize
func.func @half_pixel(%x: tensor<1x1x4x4xi32>) -> tensor<1x1x8x8xi32> {
  %0 = "migraphx.resize"(%x) {sizes = array<i64: 1, 1, 8, 8>, mode = "nearest", nearest_mode = "round_prefer_floor", coordinate_transformation_mode = "half_pixel"} : (tensor<1x1x4x4xi32>) -> tensor<1x1x8x8xi32>
  return %0 : tensor<1x1x8x8xi32>
}

// -----

// Every second element of one axis, one of another repeated: slice, step and broadcast.
// CHECK-LABEL: @down
// CHECK-NEXT: %[[S:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 2>, ends = array<i64: 7>, starts = array<i64: 0>}
// CHECK-NEXT: %[[T:.*]] = "migraphx.step"(%[[S]]) {axes = array<i64: 2>, steps = array<i64: 2>}
// CHECK-NEXT: "migraphx.multibroadcast"(%[[T]]) {{.*}} -> tensor<1x3x4x6xf32>
func.func @down(%x: tensor<1x3x8x1xf32>) -> tensor<1x3x4x6xf32> {
  %0 = "migraphx.resize"(%x) {sizes = array<i64: 1, 3, 4, 6>, mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"} : (tensor<1x3x8x1xf32>) -> tensor<1x3x4x6xf32>
  return %0 : tensor<1x3x4x6xf32>
}

// -----

// 4 elements to 6: some twice, some once. A gather, or nothing under affine-only.
// CHECK-LABEL: @uneven
// CHECK: "migraphx.gather"(%arg0, %{{.*}}) {axis = 1 : i64}
// AFFINE-LABEL: @uneven
// AFFINE-NEXT: migraphx.resize
func.func @uneven(%x: tensor<2x4xf32>) -> tensor<2x6xf32> {
  %0 = "migraphx.resize"(%x) {sizes = array<i64: 2, 6>, mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "half_pixel"} : (tensor<2x4xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

// Run-time extents; cubic.
// CHECK-LABEL: @misses
// CHECK-NEXT: migraphx.resize
// CHECK-NEXT: migraphx.resize
func.func @misses(%x: tensor<1x1x?x4xf32>, %y: tensor<4x4xf32>) -> (tensor<1x1x?x8xf32>, tensor<8x8xf32>) {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 1.0, 1.0, 2.0, 2.0>} : (tensor<1x1x?x4xf32>) -> tensor<1x1x?x8xf32>
  %1 = "migraphx.resize"(%y) {scales = array<f64: 2.0, 2.0>, mode = "cubic"} : (tensor<4x4xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<1x1x?x8xf32>, tensor<8x8xf32>
}
