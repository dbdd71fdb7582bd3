// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// The index becomes a list of one, which find_gather takes for a slice.
// CHECK-LABEL: @class_token
// CHECK-NOT: migraphx.gather
// CHECK: "migraphx.slice"({{.*}}) {axes = array<i64: 0>, ends = array<i64: 5>, {{.*}}starts = array<i64: 4>}
// CHECK-NOT: migraphx.gather
// CHECK: return
func.func @class_token(%x: tensor<1x5x3xf32>) -> tensor<1x3xf32> {
  %i = "migraphx.literal"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<1x5x3xf32>, tensor<i64>) -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// -----

// A batch of run-time extent: a squeeze needs no dims.
// CHECK-LABEL: @dynamic_batch
// CHECK: %[[S:.*]] = "migraphx.slice"(%arg0)
// CHECK-NEXT: "migraphx.squeeze"(%[[S]]) {axes = array<i64: 1>}
// CHECK-NEXT: return
func.func @dynamic_batch(%x: tensor<?x5x?xf32>) -> tensor<?x?xf32> {
  %i = "migraphx.literal"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64} : (tensor<?x5x?xf32>, tensor<i64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Near misses: the extent of the axis is not known, or the index is an argument.
// CHECK-LABEL: @stay
// CHECK-COUNT-2: migraphx.gather
func.func @stay(%x: tensor<?x3xf32>, %j: tensor<i64>) -> (tensor<3xf32>, tensor<?xf32>) {
  %i = "migraphx.literal"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %0 = "migraphx.gather"(%x, %i) {axis = 0 : i64} : (tensor<?x3xf32>, tensor<i64>) -> tensor<3xf32>
  %1 = "migraphx.gather"(%x, %j) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<i64>) -> tensor<?xf32>
  return %0, %1 : tensor<3xf32>, tensor<?xf32>
}
