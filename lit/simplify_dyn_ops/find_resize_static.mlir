// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @sizes
// CHECK: "migraphx.resize"(%arg0) {{{.*}}sizes = array<i64: 1, 6>} : (tensor<1x3xf32>) -> tensor<1x6xf32>
// CHECK: return
func.func @sizes(%x: tensor<1x3xf32>) -> tensor<?x?xf32> {
  %t = "migraphx.literal"() {value = dense<[1, 6]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "migraphx.resize"(%x, %t) : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: @scales
// CHECK: "migraphx.resize"(%arg0) {{{.*}}scales = array<f64: 1.{{0+e\+00}}, 2.{{0+e\+00}}>{{.*}}} : (tensor<?x3xf32>) -> tensor<?x6xf32>
// CHECK: return
func.func @scales(%x: tensor<?x3xf32>) -> tensor<?x?xf32> {
  %t = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.resize"(%x, %t) {mode = "linear"} : (tensor<?x3xf32>, tensor<2xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A near miss: sizes that are known at run time only.
// CHECK-LABEL: @run_time
// CHECK: "migraphx.resize"(%arg0, %{{.*}})
func.func @run_time(%x: tensor<2x3xf32>, %z: tensor<?x3xf32>) -> tensor<?x?xf32> {
  %t = "migraphx.dimensions_of"(%z) {start = 0 : i64, end = 2 : i64} : (tensor<?x3xf32>) -> tensor<2xi64>
  %0 = "migraphx.resize"(%x, %t) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A negative size keeps the extent, which the attribute says by 0.
// CHECK-LABEL: @kept
// CHECK: "migraphx.resize"(%arg0) {{{.*}}sizes = array<i64: 0, 6>} : (tensor<2x3xf32>) -> tensor<2x6xf32>
func.func @kept(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %t = "migraphx.literal"() {value = dense<[-1, 6]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "migraphx.resize"(%x, %t) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A near miss: no elements.
// CHECK-LABEL: @none
// CHECK: "migraphx.resize"(%arg0, %{{.*}})
func.func @none(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %t = "migraphx.literal"() {value = dense<[2, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "migraphx.resize"(%x, %t) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
