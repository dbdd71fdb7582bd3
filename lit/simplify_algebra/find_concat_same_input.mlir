// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @copies
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%arg0) {{.*}}out_lens = array<i64: 2, 3>
// CHECK-NEXT: return %[[B]]
func.func @copies(%x: tensor<2x1xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.concat"(%x, %x, %x) {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Near misses: an extent of 2 (the copies would have to be a new axis), another operand.
// CHECK-LABEL: @wide
// CHECK: migraphx.concat
func.func @wide(%x: tensor<2x2xf32>) -> tensor<2x4xf32> {
  %0 = "migraphx.concat"(%x, %x) {axis = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @two
// CHECK: migraphx.concat
func.func @two(%x: tensor<2x1xf32>, %y: tensor<2x1xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.concat"(%x, %x, %y) {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
