// RUN: mgx-opt %s --mgx-fuse-cache-rows --mgx-dead-code-elimination --split-input-file | filecheck %s

// CHECK-LABEL: @heads_and_rows
// CHECK-NEXT: "migraphx.concat_past_present"(%arg0, %arg1, %arg2) {{.*}}rows_first = true
func.func @heads_and_rows(%x: tensor<1x3x2x8xf32>, %n: tensor<1xi32>, %p: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %t = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x3x2x8xf32>) -> tensor<1x2x3x8xf32>
  %k = "migraphx.concat_past_present"(%t, %n, %p) {} : (tensor<1x2x3x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %k : tensor<1x2x6x8xf32>
}

// -----

// CHECK-LABEL: @rows_and_elements
// CHECK-NEXT: migraphx.transpose
// CHECK-NOT: rows_first = true
func.func @rows_and_elements(%x: tensor<1x2x8x3xf32>, %n: tensor<1xi32>, %p: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %t = "migraphx.transpose"(%x) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x2x8x3xf32>) -> tensor<1x2x3x8xf32>
  %k = "migraphx.concat_past_present"(%t, %n, %p) {} : (tensor<1x2x3x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %k : tensor<1x2x6x8xf32>
}

// -----

// Keys beside queries: a slice of heads, of what is swapped for both.
// CHECK-LABEL: @beside_queries
// CHECK-NEXT: %[[K:.*]] = "migraphx.slice"(%arg0) {axes = array<i64: 2>, ends = array<i64: 5>, starts = array<i64: 3>} : (tensor<1x3x5x8xf32>) -> tensor<1x3x2x8xf32>
// CHECK-NEXT: "migraphx.concat_past_present"(%[[K]], %arg1, %arg2) {{.*}}rows_first = true
func.func @beside_queries(%x: tensor<1x3x5x8xf32>, %n: tensor<1xi32>, %p: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %t = "migraphx.transpose"(%x) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x3x5x8xf32>) -> tensor<1x5x3x8xf32>
  %s = "migraphx.slice"(%t) {axes = array<i64: 1>, starts = array<i64: 3>, ends = array<i64: 5>} : (tensor<1x5x3x8xf32>) -> tensor<1x2x3x8xf32>
  %k = "migraphx.concat_past_present"(%s, %n, %p) {} : (tensor<1x2x3x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %k : tensor<1x2x6x8xf32>
}
