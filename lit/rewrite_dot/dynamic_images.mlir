// RUN: mgx-opt %s --mgx-name-dynamic-dims --mgx-rewrite-dot="dynamic-images strided=false" --mgx-forget-dynamic-dims --split-input-file | filecheck %s

// Rows of pixels end where only a run knows: they are rows of one product.
// CHECK-LABEL: @open
// CHECK: "migraphx.reshape"(%arg0) {{.*}} -> tensor<?x3xf32>
// CHECK: "migraphx.dot"({{.*}} -> tensor<?x2xf32>
// CHECK-NOT: migraphx.convolution
func.func @open(%x: tensor<?x?x?x3xf32>) -> tensor<?x?x?x2xf32> {
  %w = "migraphx.literal"() {value = dense<1.0> : tensor<1x1x3x2xf32>} : () -> tensor<1x1x3x2xf32>
  %0 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<?x?x?x3xf32>, tensor<1x1x3x2xf32>) -> tensor<?x?x?x2xf32>
  return %0 : tensor<?x?x?x2xf32>
}

// -----

// Of a dynamic batch of images of known size the loops know where rows end.
// CHECK-LABEL: @batch
// CHECK: migraphx.convolution
func.func @batch(%x: tensor<?x4x5x3xf32>) -> tensor<?x4x5x2xf32> {
  %w = "migraphx.literal"() {value = dense<1.0> : tensor<1x1x3x2xf32>} : () -> tensor<1x1x3x2xf32>
  %0 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<?x4x5x3xf32>, tensor<1x1x3x2xf32>) -> tensor<?x4x5x2xf32>
  return %0 : tensor<?x4x5x2xf32>
}

// -----

// 16 bits are widened as pixels are copied.
// CHECK-LABEL: @narrow
// CHECK: migraphx.convolution
func.func @narrow(%x: tensor<?x?x?x3xf16>) -> tensor<?x?x?x2xf16> {
  %w = "migraphx.literal"() {value = dense<1.0> : tensor<1x1x3x2xf16>} : () -> tensor<1x1x3x2xf16>
  %0 = "migraphx.convolution"(%x, %w) {channels_last = true} : (tensor<?x?x?x3xf16>, tensor<1x1x3x2xf16>) -> tensor<?x?x?x2xf16>
  return %0 : tensor<?x?x?x2xf16>
}
