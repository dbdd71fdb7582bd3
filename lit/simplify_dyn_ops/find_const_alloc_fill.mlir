// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK: %[[C:.*]] = "migraphx.literal"() {value = dense<5.000000e-01> : tensor<1xf16>}
// CHECK: "migraphx.multibroadcast"(%[[C]]) {{{.*}}out_lens = array<i64: 2, 3>} : (tensor<1xf16>) -> tensor<2x3xf16>
// CHECK: return
func.func @constant() -> tensor<?x?xf16> {
  %v = "migraphx.literal"() {value = dense<0.5> : tensor<f16>} : () -> tensor<f16>
  %d = "migraphx.literal"() {value = dense<[[2, 3]]> : tensor<1x2xi64>} : () -> tensor<1x2xi64>
  %e = "migraphx.reshape"(%d) {dims = array<i64: 2>} : (tensor<1x2xi64>) -> tensor<2xi64>
  %b = "migraphx.allocate"(%e) {buf_type = f16} : (tensor<2xi64>) -> tensor<?x?xf16>
  %0 = "migraphx.fill"(%v, %b) : (tensor<f16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}

// -----

// Near misses: a value of an argument, dims that are known at run time only.
// CHECK-LABEL: @stay
// CHECK-COUNT-2: migraphx.fill
func.func @stay(%v: tensor<1xf16>, %z: tensor<?x3xf32>) -> (tensor<2x3xf16>, tensor<?x?xf16>) {
  %a = "migraphx.allocate"() {shape = tensor<2x3xf16>} : () -> tensor<2x3xf16>
  %0 = "migraphx.fill"(%v, %a) : (tensor<1xf16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  %c = "migraphx.literal"() {value = dense<0.5> : tensor<f16>} : () -> tensor<f16>
  %d = "migraphx.dimensions_of"(%z) {start = 0 : i64, end = 2 : i64} : (tensor<?x3xf32>) -> tensor<2xi64>
  %b = "migraphx.allocate"(%d) {buf_type = f16} : (tensor<2xi64>) -> tensor<?x?xf16>
  %1 = "migraphx.fill"(%c, %b) : (tensor<f16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0, %1 : tensor<2x3xf16>, tensor<?x?xf16>
}
