// Reductions, extrema's indices, the prefix sum, softmax, topk, lrn: static and dynamic dims.
// RUN: mgx-opt %s | filecheck %s

// CHECK-LABEL: @reduce_sum
func.func @reduce_sum(%arg0: tensor<2x3x4xf32>, %arg1: tensor<?x3x?xf16>, %arg2: tensor<?x3xi32>, %arg3: tensor<?x1x3xf64>, %arg4: tensor<2xi64>) -> (tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>) {
  // CHECK: "migraphx.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  %r0 = "migraphx.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: "migraphx.reduce_sum"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  %r1 = "migraphx.reduce_sum"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  // CHECK: "migraphx.reduce_sum"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  %r2 = "migraphx.reduce_sum"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  // CHECK: "migraphx.reduce_sum"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  %r3 = "migraphx.reduce_sum"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  return %r0, %r1, %r2, %r3 : tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>
}

// CHECK-LABEL: @reduce_mean
func.func @reduce_mean(%arg0: tensor<2x3x4xf32>, %arg1: tensor<?x3x?xf16>, %arg2: tensor<?x3xi32>, %arg3: tensor<?x1x3xf64>, %arg4: tensor<2xi64>) -> (tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>) {
  // CHECK: "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  %r0 = "migraphx.reduce_mean"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: "migraphx.reduce_mean"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  %r1 = "migraphx.reduce_mean"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  // CHECK: "migraphx.reduce_mean"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  %r2 = "migraphx.reduce_mean"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  // CHECK: "migraphx.reduce_mean"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  %r3 = "migraphx.reduce_mean"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  return %r0, %r1, %r2, %r3 : tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>
}

// CHECK-LABEL: @reduce_max
func.func @reduce_max(%arg0: tensor<2x3x4xf32>, %arg1: tensor<?x3x?xf16>, %arg2: tensor<?x3xi32>, %arg3: tensor<?x1x3xf64>, %arg4: tensor<2xi64>) -> (tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>) {
  // CHECK: "migraphx.reduce_max"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  %r0 = "migraphx.reduce_max"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: "migraphx.reduce_max"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  %r1 = "migraphx.reduce_max"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  // CHECK: "migraphx.reduce_max"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  %r2 = "migraphx.reduce_max"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  // CHECK: "migraphx.reduce_max"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  %r3 = "migraphx.reduce_max"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  return %r0, %r1, %r2, %r3 : tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>
}

// CHECK-LABEL: @reduce_min
func.func @reduce_min(%arg0: tensor<2x3x4xf32>, %arg1: tensor<?x3x?xf16>, %arg2: tensor<?x3xi32>, %arg3: tensor<?x1x3xf64>, %arg4: tensor<2xi64>) -> (tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>) {
  // CHECK: "migraphx.reduce_min"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  %r0 = "migraphx.reduce_min"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: "migraphx.reduce_min"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  %r1 = "migraphx.reduce_min"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  // CHECK: "migraphx.reduce_min"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  %r2 = "migraphx.reduce_min"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  // CHECK: "migraphx.reduce_min"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  %r3 = "migraphx.reduce_min"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  return %r0, %r1, %r2, %r3 : tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>
}

// CHECK-LABEL: @reduce_prod
func.func @reduce_prod(%arg0: tensor<2x3x4xf32>, %arg1: tensor<?x3x?xf16>, %arg2: tensor<?x3xi32>, %arg3: tensor<?x1x3xf64>, %arg4: tensor<2xi64>) -> (tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>) {
  // CHECK: "migraphx.reduce_prod"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  %r0 = "migraphx.reduce_prod"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: "migraphx.reduce_prod"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  %r1 = "migraphx.reduce_prod"(%arg1) {axes = array<i64: -1, 0>} : (tensor<?x3x?xf16>) -> tensor<1x3x1xf16>
  // CHECK: "migraphx.reduce_prod"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  %r2 = "migraphx.reduce_prod"(%arg2) {axes = array<i64>} : (tensor<?x3xi32>) -> tensor<1x1xi32>
  // CHECK: "migraphx.reduce_prod"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  %r3 = "migraphx.reduce_prod"(%arg3, %arg4) : (tensor<?x1x3xf64>, tensor<2xi64>) -> tensor<?x1x?xf64>
  return %r0, %r1, %r2, %r3 : tensor<2x1x4xf32>, tensor<1x3x1xf16>, tensor<1x1xi32>, tensor<?x1x?xf64>
}

// CHECK-LABEL: @reduce_all
func.func @reduce_all(%arg0: tensor<2x?xi1>, %arg1: tensor<2x?xui8>) -> (tensor<2x1xi1>, tensor<1x1xui8>) {
  // CHECK: "migraphx.reduce_all"(%arg0) {axes = array<i64: 1>} : (tensor<2x?xi1>) -> tensor<2x1xi1>
  %r0 = "migraphx.reduce_all"(%arg0) {axes = array<i64: 1>} : (tensor<2x?xi1>) -> tensor<2x1xi1>
  // CHECK: "migraphx.reduce_all"(%arg1) {axes = array<i64>} : (tensor<2x?xui8>) -> tensor<1x1xui8>
  %r1 = "migraphx.reduce_all"(%arg1) {axes = array<i64>} : (tensor<2x?xui8>) -> tensor<1x1xui8>
  return %r0, %r1 : tensor<2x1xi1>, tensor<1x1xui8>
}

// CHECK-LABEL: @reduce_any
func.func @reduce_any(%arg0: tensor<2x?xi1>, %arg1: tensor<2x?xui8>) -> (tensor<2x1xi1>, tensor<1x1xui8>) {
  // CHECK: "migraphx.reduce_any"(%arg0) {axes = array<i64: 1>} : (tensor<2x?xi1>) -> tensor<2x1xi1>
  %r0 = "migraphx.reduce_any"(%arg0) {axes = array<i64: 1>} : (tensor<2x?xi1>) -> tensor<2x1xi1>
  // CHECK: "migraphx.reduce_any"(%arg1) {axes = array<i64>} : (tensor<2x?xui8>) -> tensor<1x1xui8>
  %r1 = "migraphx.reduce_any"(%arg1) {axes = array<i64>} : (tensor<2x?xui8>) -> tensor<1x1xui8>
  return %r0, %r1 : tensor<2x1xi1>, tensor<1x1xui8>
}

// CHECK-LABEL: @argmax
func.func @argmax(%arg0: tensor<2x3xf32>, %arg1: tensor<?x?xi8>) -> (tensor<1x3xi64>, tensor<?x1xi64>) {
  // CHECK: "migraphx.argmax"(%arg0) : (tensor<2x3xf32>) -> tensor<1x3xi64>
  %r0 = "migraphx.argmax"(%arg0) : (tensor<2x3xf32>) -> tensor<1x3xi64>
  // CHECK: "migraphx.argmax"(%arg1) {axis = -1 : i64, select_last_index = true} : (tensor<?x?xi8>) -> tensor<?x1xi64>
  %r1 = "migraphx.argmax"(%arg1) {axis = -1 : i64, select_last_index = true} : (tensor<?x?xi8>) -> tensor<?x1xi64>
  return %r0, %r1 : tensor<1x3xi64>, tensor<?x1xi64>
}

// CHECK-LABEL: @argmin
func.func @argmin(%arg0: tensor<2x3xf32>, %arg1: tensor<?x?xi8>) -> (tensor<1x3xi64>, tensor<?x1xi64>) {
  // CHECK: "migraphx.argmin"(%arg0) : (tensor<2x3xf32>) -> tensor<1x3xi64>
  %r0 = "migraphx.argmin"(%arg0) : (tensor<2x3xf32>) -> tensor<1x3xi64>
  // CHECK: "migraphx.argmin"(%arg1) {axis = -1 : i64, select_last_index = true} : (tensor<?x?xi8>) -> tensor<?x1xi64>
  %r1 = "migraphx.argmin"(%arg1) {axis = -1 : i64, select_last_index = true} : (tensor<?x?xi8>) -> tensor<?x1xi64>
  return %r0, %r1 : tensor<1x3xi64>, tensor<?x1xi64>
}

// CHECK-LABEL: @prefix_scan_sum
func.func @prefix_scan_sum(%arg0: tensor<2x3xf32>, %arg1: tensor<?x?xi64>) -> (tensor<2x3xf32>, tensor<?x?xi64>) {
  // CHECK: "migraphx.prefix_scan_sum"(%arg0) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r0 = "migraphx.prefix_scan_sum"(%arg0) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.prefix_scan_sum"(%arg1) {axis = -1 : i64, exclusive = true, reverse = true} : (tensor<?x?xi64>) -> tensor<?x?xi64>
  %r1 = "migraphx.prefix_scan_sum"(%arg1) {axis = -1 : i64, exclusive = true, reverse = true} : (tensor<?x?xi64>) -> tensor<?x?xi64>
  return %r0, %r1 : tensor<2x3xf32>, tensor<?x?xi64>
}

// CHECK-LABEL: @softmax
func.func @softmax(%arg0: tensor<2x3xf32>, %arg1: tensor<?x8x?x?xbf16>) -> (tensor<2x3xf32>, tensor<?x8x?x?xbf16>) {
  // CHECK: "migraphx.softmax"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r0 = "migraphx.softmax"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.softmax"(%arg1) {axis = -1 : i64} : (tensor<?x8x?x?xbf16>) -> tensor<?x8x?x?xbf16>
  %r1 = "migraphx.softmax"(%arg1) {axis = -1 : i64} : (tensor<?x8x?x?xbf16>) -> tensor<?x8x?x?xbf16>
  return %r0, %r1 : tensor<2x3xf32>, tensor<?x8x?x?xbf16>
}

// CHECK-LABEL: @logsoftmax
func.func @logsoftmax(%arg0: tensor<2x3xf32>, %arg1: tensor<?x8x?x?xbf16>) -> (tensor<2x3xf32>, tensor<?x8x?x?xbf16>) {
  // CHECK: "migraphx.logsoftmax"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r0 = "migraphx.logsoftmax"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.logsoftmax"(%arg1) {axis = -1 : i64} : (tensor<?x8x?x?xbf16>) -> tensor<?x8x?x?xbf16>
  %r1 = "migraphx.logsoftmax"(%arg1) {axis = -1 : i64} : (tensor<?x8x?x?xbf16>) -> tensor<?x8x?x?xbf16>
  return %r0, %r1 : tensor<2x3xf32>, tensor<?x8x?x?xbf16>
}

// CHECK-LABEL: @topk
func.func @topk(%arg0: tensor<2x3xf32>, %arg1: tensor<?x?xi32>, %arg2: tensor<?x3xf16>, %arg3: tensor<4x?xi64>) -> (tensor<2x2xf32>, tensor<2x2xi64>, tensor<?x5xi32>, tensor<?x5xi64>, tensor<1x3xf16>, tensor<1x3xi64>) {
  // CHECK: "migraphx.topk"(%arg0) {axis = 1 : i64, k = 2 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %r0:2 = "migraphx.topk"(%arg0) {axis = 1 : i64, k = 2 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  // CHECK: "migraphx.topk"(%arg1) {axis = -1 : i64, k = 5 : i64, largest = false} : (tensor<?x?xi32>) -> (tensor<?x5xi32>, tensor<?x5xi64>)
  %r1:2 = "migraphx.topk"(%arg1) {axis = -1 : i64, k = 5 : i64, largest = false} : (tensor<?x?xi32>) -> (tensor<?x5xi32>, tensor<?x5xi64>)
  // CHECK: "migraphx.topk"(%arg2, %arg3) {k = 1 : i64} : (tensor<?x3xf16>, tensor<4x?xi64>) -> (tensor<1x3xf16>, tensor<1x3xi64>)
  %r2:2 = "migraphx.topk"(%arg2, %arg3) {k = 1 : i64} : (tensor<?x3xf16>, tensor<4x?xi64>) -> (tensor<1x3xf16>, tensor<1x3xi64>)
  return %r0#0, %r0#1, %r1#0, %r1#1, %r2#0, %r2#1 : tensor<2x2xf32>, tensor<2x2xi64>, tensor<?x5xi32>, tensor<?x5xi64>, tensor<1x3xf16>, tensor<1x3xi64>
}

// CHECK-LABEL: @lrn
func.func @lrn(%arg0: tensor<?x4x?xf32>) -> (tensor<?x4x?xf32>) {
  // CHECK: "migraphx.lrn"(%arg0) {alpha = 2.000000e+00 : f64, size = 3 : i64} : (tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %r0 = "migraphx.lrn"(%arg0) {alpha = 2.000000e+00 : f64, size = 3 : i64} : (tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  return %r0 : tensor<?x4x?xf32>
}
