// RUN: mgx-opt %s --mgx-simplify-reshapes --split-input-file | filecheck %s

// Letters are numbered, and the numbers looked up: one table of three rows does both.
// CHECK-LABEL: @embedding
// CHECK: %[[T:.*]] = "migraphx.literal"() {value = dense<{{\[\[}}5.0{{.*}}, 6.0{{.*}}], [1.0{{.*}}, 2.0{{.*}}], [5.0{{.*}}, 6.0{{.*}}]]>
// CHECK-NEXT: "migraphx.gather"(%[[T]], %arg0) {axis = 0 : i64}
// CHECK-NEXT: return
func.func @embedding(%i: tensor<?x4xi64>) -> tensor<?x4x2xf32> {
  %p = "migraphx.literal"() {value = dense<[2, 0, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %x = "migraphx.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %0 = "migraphx.gather"(%p, %i) {axis = 0 : i64} : (tensor<3xi64>, tensor<?x4xi64>) -> tensor<?x4xi64>
  %1 = "migraphx.convert"(%0) {target_type = i32} : (tensor<?x4xi64>) -> tensor<?x4xi32>
  %2 = "migraphx.gather"(%x, %1) {axis = 0 : i64} : (tensor<3x2xf32>, tensor<?x4xi32>) -> tensor<?x4x2xf32>
  return %2 : tensor<?x4x2xf32>
}

// -----

// Near misses: a table that the run gives, a place beyond the table, and numbers that are computed.
// CHECK-LABEL: @stay
// CHECK-COUNT-5: migraphx.gather
func.func @stay(%i: tensor<?xi64>, %x: tensor<3xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %p = "migraphx.literal"() {value = dense<[2, 0, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %far = "migraphx.literal"() {value = dense<[2, 0, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %t = "migraphx.literal"() {value = dense<[1.0, 2.0, 4.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %0 = "migraphx.gather"(%p, %i) {axis = 0 : i64} : (tensor<3xi64>, tensor<?xi64>) -> tensor<?xi64>
  %1 = "migraphx.gather"(%x, %0) {axis = 0 : i64} : (tensor<3xf32>, tensor<?xi64>) -> tensor<?xf32>
  %2 = "migraphx.gather"(%far, %i) {axis = 0 : i64} : (tensor<3xi64>, tensor<?xi64>) -> tensor<?xi64>
  %3 = "migraphx.gather"(%t, %2) {axis = 0 : i64} : (tensor<3xf32>, tensor<?xi64>) -> tensor<?xf32>
  %4 = "migraphx.neg"(%0) : (tensor<?xi64>) -> tensor<?xi64>
  %5 = "migraphx.gather"(%t, %4) {axis = 0 : i64} : (tensor<3xf32>, tensor<?xi64>) -> tensor<?xf32>
  return %1, %3, %5 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
