// RUN: mgx-opt %s --mgx-loop-images="least=-10000 launch=0" --split-input-file | filecheck %s

// A dynamic number of images. The bias is broadcast to the dims of one image, and the result of the
// loop has channels last, as no pass moves a transpose across its border.
// CHECK-LABEL: @dynamic
// CHECK: %[[D:.*]] = "migraphx.dimensions_of"(%arg0) {end = 1 : i64, start = 0 : i64}
// CHECK: %[[N:.*]] = "migraphx.squeeze"(%[[D]])
// CHECK: %[[L:.*]] = "migraphx.loop"(%[[N]],
// CHECK: %[[X:.*]] = "migraphx.scan_slice"(%arg0, %{{.*}}) {axis = 0 : i64, direction = 0 : i64} {{.*}} -> tensor<1x3x16x16xf32>
// CHECK: %[[C:.*]] = "migraphx.convolution"(%[[X]], {{.*}} -> tensor<1x4x16x16xf32>
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"({{.*}} -> tensor<1x4x16x16xf32>
// CHECK: %[[A:.*]] = "migraphx.add"(%[[C]], %[[B]])
// CHECK: %[[R:.*]] = "migraphx.relu"(%[[A]])
// CHECK: %[[T:.*]] = "migraphx.transpose"(%[[R]]) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK: %[[S:.*]] = "migraphx.squeeze"(%[[T]]) {axes = array<i64: 0>
// CHECK: "migraphx.yield"(%{{.*}}, %[[S]])
// CHECK: padded = false
// CHECK-SAME: -> tensor<?x16x16x4xf32>
// CHECK-NEXT: %[[F:.*]] = "migraphx.transpose"(%[[L]]) {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT: return %[[F]]
func.func @dynamic(%x: tensor<?x3x16x16xf32>) -> tensor<?x4x16x16xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<4x3x3x3xf32>} : () -> tensor<4x3x3x3xf32>
  %b = "migraphx.literal"() {value = dense<0.25> : tensor<4x1x1xf32>} : () -> tensor<4x1x1xf32>
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<?x3x16x16xf32>, tensor<4x3x3x3xf32>) -> tensor<?x4x16x16xf32>
  %1 = "migraphx.multibroadcast"(%b, %0) : (tensor<4x1x1xf32>, tensor<?x4x16x16xf32>) -> tensor<?x4x16x16xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<?x4x16x16xf32>, tensor<?x4x16x16xf32>) -> tensor<?x4x16x16xf32>
  %3 = "migraphx.relu"(%2) : (tensor<?x4x16x16xf32>) -> tensor<?x4x16x16xf32>
  return %3 : tensor<?x4x16x16xf32>
}

// -----

// A fixed number of images: the results have it, too. What others read is stacked as well. The last
// convolution has more weights than an image, and stays behind the loop.
// CHECK-LABEL: @fixed
// CHECK: %[[L:.*]]:2 = "migraphx.loop"(
// CHECK: "migraphx.pooling"
// CHECK: max_iterations = 5 : i64
// CHECK-SAME: padded = true
// CHECK-SAME: -> (tensor<5x8x8x2xf32>, tensor<5x4x4x2xf32>)
// CHECK-NEXT: %[[A:.*]] = "migraphx.transpose"(%[[L]]#0)
// CHECK-NEXT: %[[B:.*]] = "migraphx.transpose"(%[[L]]#1)
// CHECK-NEXT: "migraphx.convolution"(%[[B]],
// CHECK-NEXT: return %[[A]]
func.func @fixed(%x: tensor<5x2x8x8xf32>) -> (tensor<5x2x8x8xf32>, tensor<5x64x1x1xf32>) {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %v = "migraphx.literal"() {value = dense<0.5> : tensor<64x2x4x4xf32>} : () -> tensor<64x2x4x4xf32>
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<5x2x8x8xf32>, tensor<2x2x1x1xf32>) -> tensor<5x2x8x8xf32>
  %1 = "migraphx.pooling"(%0) {mode = "max", lengths = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<5x2x8x8xf32>) -> tensor<5x2x4x4xf32>
  %2 = "migraphx.convolution"(%1, %v) {padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<5x2x4x4xf32>, tensor<64x2x4x4xf32>) -> tensor<5x64x1x1xf32>
  return %0, %2 : tensor<5x2x8x8xf32>, tensor<5x64x1x1xf32>
}

// -----

// A loop over one image would be the program as it is.
// CHECK-LABEL: @one
// CHECK-NOT: migraphx.loop
func.func @one(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x8x8xf32>
  return %0 : tensor<1x2x8x8xf32>
}

// -----

// The mean over the images mixes them: the loop ends ahead of it.
// CHECK-LABEL: @mixed
// CHECK: %[[L:.*]] = "migraphx.loop"(
// CHECK-NOT: migraphx.reduce_mean
// CHECK: "migraphx.yield"
// CHECK: %[[T:.*]] = "migraphx.transpose"(%[[L]])
// CHECK-NEXT: "migraphx.reduce_mean"(%[[T]])
func.func @mixed(%x: tensor<3x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = "migraphx.literal"() {value = dense<0.5> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<3x2x8x8xf32>, tensor<2x2x1x1xf32>) -> tensor<3x2x8x8xf32>
  %1 = "migraphx.reduce_mean"(%0) {axes = array<i64: 0>} : (tensor<3x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %1 : tensor<1x2x8x8xf32>
}
