// RUN: mgx-opt --mgx-lower-to-linalg=arch=x86-64-v3 --split-input-file %s | filecheck %s

// Linear, along rows: places and weights of a row are made once, then each row is vectors of two taps.
// CHECK-LABEL: func.func @main(
// CHECK: "flow.dispatch"{{.*}}@kernel_dispatch_0_resize
// CHECK: tensor.empty() : tensor<8xi32>
// CHECK: math.floor
// CHECK: tensor.insert {{.*}} : tensor<8xi32>
// CHECK: vector.transfer_read {{.*}} : tensor<8xf32>, vector<8xf32>
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 1.0, 2.0>, sizes = array<i64>, nearest_mode = "floor", mode = "linear", coordinate_transformation_mode = "half_pixel"} : (tensor<4x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Near miss: nearest elements are read by linalg.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: vector.transfer_read
func.func @main(%x: tensor<3xf32>) -> tensor<6xf32> {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 2.0>, sizes = array<i64>, nearest_mode = "floor", mode = "nearest", coordinate_transformation_mode = "half_pixel"} : (tensor<3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
