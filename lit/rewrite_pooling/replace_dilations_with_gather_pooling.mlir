// RUN: mgx-opt %s --mgx-rewrite-pooling=rewrite-dilations --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-pooling --split-input-file | filecheck %s --check-prefix=OFF

// Padding that never wins, a gather for each axis, windows side by side.
// CHECK-LABEL: @max
// CHECK: %[[P:.*]] = "migraphx.pad"(%arg0) {{.*}}value = 0xFFF0000000000000 : f64{{.*}} -> tensor<1x2x9x9xf32>
// CHECK: %[[A:.*]] = "migraphx.gather"(%[[P]], %{{.*}}) {axis = 2 : i64} {{.*}} -> tensor<1x2x10x9xf32>
// CHECK: %[[B:.*]] = "migraphx.gather"(%[[A]], %{{.*}}) {axis = 3 : i64} {{.*}} -> tensor<1x2x10x9xf32>
// CHECK: "migraphx.pooling"(%[[B]]) {{.*}}dilations = array<i64: 1, 1>{{.*}}lengths = array<i64: 2, 3>{{.*}}stride = array<i64: 2, 3>{{.*}} -> tensor<1x2x5x3xf32>
// OFF-LABEL: @max
// OFF-NEXT: migraphx.pooling
func.func @max(%x: tensor<1x2x7x7xf32>) -> tensor<1x2x5x3xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 2, 3>, stride = array<i64: 1, 2>, padding = array<i64: 1, 1>, dilations = array<i64: 4, 2>} : (tensor<1x2x7x7xf32>) -> tensor<1x2x5x3xf32>
  return %0 : tensor<1x2x5x3xf32>
}

// -----

// An average whose padding counts; channels last.
// CHECK-LABEL: @average
// CHECK: migraphx.pad
// CHECK: "migraphx.gather"{{.*}} {axis = 1 : i64}
// CHECK: migraphx.pooling
func.func @average(%x: tensor<1x7x2xf32>) -> tensor<1x5x2xf32> {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 3>, stride = array<i64: 1>, padding = array<i64: 1>, dilations = array<i64: 2>, count_include_pad = true, channels_last = true} : (tensor<1x7x2xf32>) -> tensor<1x5x2xf32>
  return %0 : tensor<1x5x2xf32>
}

// -----

// Padding that does not count; windows without holes; run-time extents; too many elements.
// CHECK-LABEL: @misses
// CHECK-NEXT: migraphx.pooling
// CHECK-NEXT: migraphx.pooling
// CHECK-NEXT: migraphx.pooling
// CHECK-NEXT: migraphx.pooling
// CHECK-NEXT: return
func.func @misses(%x: tensor<1x2x7xf32>, %y: tensor<1x2x?xf32>, %z: tensor<1x8x20004xf32>) -> (tensor<1x2x5xf32>, tensor<1x2x6xf32>, tensor<1x2x?xf32>, tensor<1x8x20000xf32>) {
  %0 = "migraphx.pooling"(%x) {mode = "average", lengths = array<i64: 3>, stride = array<i64: 1>, padding = array<i64: 1>, dilations = array<i64: 2>} : (tensor<1x2x7xf32>) -> tensor<1x2x5xf32>
  %1 = "migraphx.pooling"(%x) {mode = "max", lengths = array<i64: 2>, stride = array<i64: 1>, padding = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x7xf32>) -> tensor<1x2x6xf32>
  %2 = "migraphx.pooling"(%y) {mode = "max", lengths = array<i64: 2>, stride = array<i64: 1>, padding = array<i64: 0>, dilations = array<i64: 2>} : (tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %3 = "migraphx.pooling"(%z) {mode = "max", lengths = array<i64: 3>, stride = array<i64: 1>, padding = array<i64: 0>, dilations = array<i64: 2>} : (tensor<1x8x20004xf32>) -> tensor<1x8x20000xf32>
  return %0, %1, %2, %3 : tensor<1x2x5xf32>, tensor<1x2x6xf32>, tensor<1x2x?xf32>, tensor<1x8x20000xf32>
}
