// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK: "migraphx.slice"(%arg0) {axes = array<i64: 1>, ends = array<i64: 4>, {{.*}}starts = array<i64: 1>} : (tensor<2x5xf32>) -> tensor<2x3xf32>
// CHECK: return
func.func @constant(%x: tensor<2x5xf32>) -> tensor<2x?xf32> {
  %a = "migraphx.literal"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %b = "migraphx.literal"() {value = dense<4> : tensor<1xi32>} : () -> tensor<1xi32>
  %0 = "migraphx.slice"(%x, %a, %b) {axes = array<i64: 1>, starts = array<i64>, ends = array<i64>, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x5xf32>, tensor<1xi64>, tensor<1xi32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// A near miss: an operand is not constant.
// CHECK-LABEL: @run_time
// CHECK: "migraphx.slice"(%arg0, %arg1
func.func @run_time(%x: tensor<2x5xf32>, %a: tensor<1xi64>) -> tensor<2x?xf32> {
  %b = "migraphx.literal"() {value = dense<4> : tensor<1xi32>} : () -> tensor<1xi32>
  %0 = "migraphx.slice"(%x, %a, %b) {axes = array<i64: 1>, starts = array<i64>, ends = array<i64>, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x5xf32>, tensor<1xi64>, tensor<1xi32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}
