// RUN: mgx-opt %s --mgx-optimize-module --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-optimize-module --split-input-file --mlir-pass-statistics 2>&1 -o %t | filecheck %s --check-prefix=STATS

// A convolution with bias and a batch normalisation becomes a convolution with bias.
// CHECK-LABEL: @batch_norm
// CHECK: %[[W:.*]] = "migraphx.literal"() {value = dense<{{\[\[\[\[}}2.0
// CHECK: %[[C:.*]] = "migraphx.convolution"(%arg0, %[[W]])
// CHECK: %[[B:.*]] = "migraphx.literal"() {value = dense<{{.*}}-1.0{{.*}}7.0{{.*}}> : tensor<1x2x1x1xf32>}
// CHECK: %[[M:.*]] = "migraphx.{{.*}}broadcast"(%[[B]])
// CHECK: "migraphx.add"(%[[C]], %[[M]])
// CHECK-NEXT: return
func.func @batch_norm(%x: tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32> {
  %w = "migraphx.literal"() {value = dense<[[[[1.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %bias = "migraphx.literal"() {value = dense<[0.5, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %mean = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %scale = "migraphx.literal"() {value = dense<[2.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %beta = "migraphx.literal"() {value = dense<[0.0, 11.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %biasb = "migraphx.broadcast"(%bias) {axis = 1 : i64, out_lens = array<i64: 1, 2, 3, 3>} : (tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %meanb = "migraphx.broadcast"(%mean) {axis = 1 : i64, out_lens = array<i64: 1, 2, 3, 3>} : (tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %scaleb = "migraphx.broadcast"(%scale) {axis = 1 : i64, out_lens = array<i64: 1, 2, 3, 3>} : (tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %betab = "migraphx.broadcast"(%beta) {axis = 1 : i64, out_lens = array<i64: 1, 2, 3, 3>} : (tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %0 = "migraphx.convolution"(%x, %w) : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x3x3xf32>
  %1 = "migraphx.add"(%0, %biasb) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %2 = "migraphx.sub"(%1, %meanb) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %3 = "migraphx.mul"(%2, %scaleb) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %4 = "migraphx.add"(%3, %betab) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %4 : tensor<1x2x3x3xf32>
}

// STATS: OptimizeModule
// STATS: SimplifyAlgebra
// STATS: (S) 1 find_mul_conv 
