// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce=weighted=true | filecheck %s

// The sum of two branches: the first one's value stays in 8 bits, and the second's kernel widens it.
// CHECK-LABEL: @main(
// CHECK: %[[A:.*]] = "migraphx.group"(%arg0
// CHECK: tag = "quant_convolution"
// CHECK-SAME: -> tensor<1x6x6x4xi8>
// CHECK: %[[B:.*]] = "migraphx.group"({{.*}}%[[A]]
// CHECK: "migraphx.add"
// CHECK: tag = "quant_convolution"
// CHECK: return %[[B]]
func.func @main(%x: tensor<1x6x6x4xi8>) -> tensor<1x6x6x4xf32> {
  %w = "migraphx.literal"() {value = dense<3> : tensor<1x1x4x4xi8>} : () -> tensor<1x1x4x4xi8>
  %0 = "migraphx.quant_convolution"(%x, %w) {channels_last = true} : (tensor<1x6x6x4xi8>, tensor<1x1x4x4xi8>) -> tensor<1x6x6x4xi32>
  %1 = "migraphx.convert"(%0) {target_type = i8} : (tensor<1x6x6x4xi32>) -> tensor<1x6x6x4xi8>
  %2 = "migraphx.convert"(%1) {target_type = f32} : (tensor<1x6x6x4xi8>) -> tensor<1x6x6x4xf32>
  %3 = "migraphx.neg"(%2) : (tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  %4 = "migraphx.quant_convolution"(%x, %w) {channels_last = true} : (tensor<1x6x6x4xi8>, tensor<1x1x4x4xi8>) -> tensor<1x6x6x4xi32>
  %5 = "migraphx.convert"(%4) {target_type = f32} : (tensor<1x6x6x4xi32>) -> tensor<1x6x6x4xf32>
  %6 = "migraphx.add"(%5, %3) : (tensor<1x6x6x4xf32>, tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  return %6 : tensor<1x6x6x4xf32>
}
