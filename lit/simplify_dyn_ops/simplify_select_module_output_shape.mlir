// RUN: mgx-opt %s --mgx-simplify-dyn-ops --split-input-file | filecheck %s

// The second extent is the same in both, the first is not; the dims of the result are one known,
// one not.
// CHECK-LABEL: @main
// CHECK-NEXT: "migraphx.select_module"(%arg0) {{.*}} : (tensor<?x3xf32>) -> tensor<?x6xf32>
// CHECK: return %{{.*}} : tensor<?x6xf32>
func.func private @dim_4(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = "migraphx.concat"(%x, %x) {axis = 1 : i64} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func private @dim_5(%x: tensor<5x3xf32>) -> tensor<5x6xf32> {
  %0 = "migraphx.concat"(%x, %x) {axis = 1 : i64} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x?xf32> {
  %0 = "migraphx.select_module"(%x) {callees = [@dim_4, @dim_5]} : (tensor<?x3xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A near miss: the functions return as many elements as they take, which differs.
// CHECK-LABEL: @main
// CHECK-NEXT: "migraphx.select_module"(%arg0) {{.*}} -> tensor<?xf32>
func.func private @dim_4(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @dim_5(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = "migraphx.abs"(%x) : (tensor<5xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "migraphx.select_module"(%x) {callees = [@dim_4, @dim_5]} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
