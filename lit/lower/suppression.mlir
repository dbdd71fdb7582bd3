// nonmaxsuppression as loops of our own.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s

// Candidates are packed side by side, put into a heap, and taken from it until enough boxes are
// found; kept boxes are compared with one a vector at a time. One workgroup writes the list, whose
// first rows are the result, and its length.
// CHECK-LABEL: @main(
// CHECK: "flow.dispatch"
// CHECK-NOT: tensor.extract
// CHECK: "hal.buffer.load"
// CHECK-NOT: "flow.dispatch"
// CHECK: "hal.tensor.import"
// CHECK-NEXT: return
// CHECK: "flow.executable"
// CHECK: llvm.call_intrinsic "llvm.experimental.vector.compress"({{.*}}) : (vector<8xi64>, vector<8xi1>, vector<8xi64>) -> vector<8xi64>
// CHECK: math.ctpop
// CHECK: scf.while
// CHECK: scf.while
// CHECK: arith.divf {{.*}} : vector<16xf32>
// CHECK: vector.reduction <or>
func.func @suppressed(%b: tensor<1x6x4xf32>, %s: tensor<1x2x6xf32>, %n: tensor<1xi64>, %i: tensor<1xf32>, %t: tensor<f32>) -> tensor<?x3xi64> {
  %0 = "migraphx.nonmaxsuppression"(%b, %s, %n, %i, %t) {center_point_box = false, use_dyn_output = false, padded = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<1xi64>, tensor<1xf32>, tensor<f32>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// -----

// Many candidates have scratch in memory, and lists of their own, which a second kernel joins before
// the host reads their length.
// CHECK-LABEL: @main(
// CHECK: "flow.dispatch"
// CHECK-NOT: "util.optimization_barrier"
// CHECK: "flow.dispatch"
// CHECK: "hal.buffer.load"
// CHECK-NOT: "flow.dispatch"
// CHECK: "hal.tensor.import"
// CHECK-NEXT: return
func.func @many(%b: tensor<1x6000x4xf32>, %s: tensor<1x2x6000xf32>, %n: tensor<1xi64>, %i: tensor<1xf32>, %t: tensor<f32>) -> tensor<?x3xi64> {
  %0 = "migraphx.nonmaxsuppression"(%b, %s, %n, %i, %t) {center_point_box = false, use_dyn_output = false, padded = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<1x6000x4xf32>, tensor<1x2x6000xf32>, tensor<1xi64>, tensor<1xf32>, tensor<f32>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// -----

// f64 is left to the compiler.
// CHECK-LABEL: @main(
// CHECK-NOT: "flow.executable"
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
func.func @doubles(%b: tensor<1x6x4xf64>, %s: tensor<1x2x6xf64>, %n: tensor<1xi64>) -> tensor<?x3xi64> {
  %0 = "migraphx.nonmaxsuppression"(%b, %s, %n) {center_point_box = false, use_dyn_output = false, padded = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<1x6x4xf64>, tensor<1x2x6xf64>, tensor<1xi64>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}
