// RUN: mgx-opt %s --mgx-fuse-pointwise --split-input-file | filecheck %s

// A kernel of one op.
// CHECK-LABEL: @one
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: "migraphx.add"
// CHECK-NEXT: "migraphx.yield"
// CHECK: return %[[K]]
func.func @one(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = "migraphx.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %a : tensor<2x3xf32>
}

// -----

// Run-time dims.
// CHECK-LABEL: @dynamic
// CHECK-NEXT: "migraphx.pointwise"(%arg0)
func.func @dynamic(%x: tensor<?x3xf64>) -> tensor<?x3xf64> {
  %a = "migraphx.neg"(%x) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  return %a : tensor<?x3xf64>
}

// -----

// Near misses: no elements, no pointwise op, dims of the host.
// CHECK-LABEL: @empty
// CHECK-NOT: migraphx.pointwise
func.func @empty(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
  %a = "migraphx.neg"(%x) : (tensor<0x3xf32>) -> tensor<0x3xf32>
  return %a : tensor<0x3xf32>
}

// -----

// CHECK-LABEL: @others
// CHECK-NOT: migraphx.pointwise
func.func @others(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<2x1xf32>) {
  %t = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r = "migraphx.reduce_sum"(%y) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %t, %r : tensor<3x2xf32>, tensor<2x1xf32>
}

// -----

// CHECK-LABEL: @host
// CHECK-NOT: migraphx.pointwise
func.func @host(%x: tensor<?x3xf32>) -> tensor<1xi64> {
  %l = "migraphx.literal"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %d = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x3xf32>) -> tensor<1xi64>
  %m = "migraphx.mul"(%d, %l) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %m : tensor<1xi64>
}
