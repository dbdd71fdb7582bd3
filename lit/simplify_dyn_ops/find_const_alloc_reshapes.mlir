// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// 0 and -1 mean in the attribute what they mean in the operand.
// CHECK-LABEL: @constant
// CHECK: "migraphx.reshape"(%arg0) {dims = array<i64: 0, -1>} : (tensor<?x3x4xf32>) -> tensor<?x12xf32>
// CHECK: return
func.func @constant(%x: tensor<?x3x4xf32>) -> tensor<?x?xf32> {
  %d = "migraphx.literal"() {value = dense<[0, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "migraphx.reshape"(%x, %d) {dims = array<i64>} : (tensor<?x3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Computed from what is known: the extents of another tensor.
// CHECK-LABEL: @computed
// CHECK: "migraphx.reshape"(%arg0) {dims = array<i64: 6, 2>} : (tensor<3x4xf32>) -> tensor<6x2xf32>
// CHECK: return
func.func @computed(%x: tensor<3x4xf32>, %y: tensor<6x2xi1>) -> tensor<?x?xf32> {
  %d = "migraphx.dimensions_of"(%y) {start = 0 : i64, end = 2 : i64} : (tensor<6x2xi1>) -> tensor<2xi64>
  %0 = "migraphx.reshape"(%x, %d) {dims = array<i64>} : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A near miss: the extents of a tensor of which one is unknown.
// CHECK-LABEL: @run_time
// CHECK: "migraphx.reshape"(%arg0, %{{.*}})
func.func @run_time(%x: tensor<?x4xf32>, %y: tensor<?x4xi1>) -> tensor<?x?xf32> {
  %d = "migraphx.dimensions_of"(%y) {start = 0 : i64, end = 2 : i64} : (tensor<?x4xi1>) -> tensor<2xi64>
  %0 = "migraphx.reshape"(%x, %d) {dims = array<i64>} : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
