// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK: "migraphx.slice"(%arg0) {axes = array<i64: 1>, ends = array<i64: 4>, {{.*}}starts = array<i64: 1>} : (tensor<2x5xf32>) -> tensor<2x3xf32>
// CHECK: return
func.func @constant(%x: tensor<2x5xf32>) -> tensor<?x?xf32> {
  %a = "migraphx.literal"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %b = "migraphx.literal"() {value = dense<4> : tensor<1xi32>} : () -> tensor<1xi32>
  %0 = "migraphx.slice"(%x, %a, %b, %a) {axes = array<i64>, starts = array<i64>, ends = array<i64>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<2x5xf32>, tensor<1xi64>, tensor<1xi32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A near miss: a bound is known at run time only.
// CHECK-LABEL: @run_time
// CHECK: "migraphx.slice"(%arg0, %{{.*}}, %{{.*}}, %{{.*}})
func.func @run_time(%x: tensor<2x5xf32>, %z: tensor<?xf32>) -> tensor<?x?xf32> {
  %a = "migraphx.dimensions_of"(%z) {start = 0 : i64, end = 1 : i64} : (tensor<?xf32>) -> tensor<1xi64>
  %c = "migraphx.literal"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %b = "migraphx.literal"() {value = dense<4> : tensor<1xi32>} : () -> tensor<1xi32>
  %0 = "migraphx.slice"(%x, %a, %b, %c) {axes = array<i64>, starts = array<i64>, ends = array<i64>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<2x5xf32>, tensor<1xi64>, tensor<1xi32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
