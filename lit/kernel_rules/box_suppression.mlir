// The rule `box_suppression` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::nonmaxsuppression: box_suppression (
func.func @main(%b: tensor<1x6x4xf32>, %s: tensor<1x2x6xf32>, %n: tensor<1xi64>) -> tensor<?x3xi64> {
  %0 = "migraphx.nonmaxsuppression"(%b, %s, %n) {center_point_box = false, use_dyn_output = false, padded = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<1xi64>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}
