// RUN: mgx-opt %s --mgx-rewrite-convolution --split-input-file | filecheck %s

// Every second image with the two around it.
// CHECK-LABEL: @volume
// CHECK: %[[X:.*]] = "migraphx.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 4, 1>}
// CHECK: %[[P:.*]] = "migraphx.pad"(%[[X]]) {{.*}} -> tensor<2x9x8x6x4xf32>
// CHECK-COUNT-3: "migraphx.step"
// CHECK: "migraphx.concat"{{.*}} -> tensor<2x4x8x6x12xf32>
// CHECK: "migraphx.reshape"{{.*}} -> tensor<8x8x6x12xf32>
// CHECK: "migraphx.convolution"{{.*}}padding = array<i64: 1, 0, 1, 0>{{.*}}stride = array<i64: 1, 2>{{.*}} -> tensor<8x8x2x5xf32>
// CHECK: "migraphx.reshape"{{.*}} -> tensor<2x4x8x2x5xf32>
// CHECK: "migraphx.transpose"{{.*}}permutation = array<i64: 0, 4, 1, 2, 3>
func.func @volume(%x: tensor<2x4x7x8x6xf32>, %w: tensor<5x4x3x3x3xf32>) -> tensor<2x5x4x8x2xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1, 0>, stride = array<i64: 2, 1, 2>, dilation = array<i64: 1, 1, 1>} : (tensor<2x4x7x8x6xf32>, tensor<5x4x3x3x3xf32>) -> tensor<2x5x4x8x2xf32>
  return %0 : tensor<2x5x4x8x2xf32>
}

// -----

// CHECK-LABEL: @groups
// CHECK-NEXT: migraphx.convolution
func.func @groups(%x: tensor<2x4x7x8x6xf32>, %w: tensor<4x1x1x1x1xf32>) -> tensor<2x4x7x8x6xf32> {
  %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0, 0>, stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, group = 4} : (tensor<2x4x7x8x6xf32>, tensor<4x1x1x1x1xf32>) -> tensor<2x4x7x8x6xf32>
  return %0 : tensor<2x4x7x8x6xf32>
}
