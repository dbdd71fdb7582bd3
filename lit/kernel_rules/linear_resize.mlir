// The rule `linear_resize` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::resize: linear_resize (
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.resize"(%x) {scales = array<f64: 1.0, 2.0>, sizes = array<i64>, nearest_mode = "floor", mode = "linear", coordinate_transformation_mode = "half_pixel"} : (tensor<4x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
