// RUN: mgx-opt %s --mgx-name-dynamic-dims --mgx-dead-code-elimination --mgx-layout-convolution --mgx-forget-dynamic-dims --mgx-dead-code-elimination --split-input-file | filecheck %s
// Dynamic images keep the order of their axes as fixed ones do.

// Resized to the sizes of another one, which it states: behind it the run has them again.
// CHECK-LABEL: @to_sizes_of_another
// CHECK: %[[K:.*]] = "migraphx.literal"() {value = dense<-1> : tensor<1xi64>}
// CHECK: %[[T:.*]] = "migraphx.concat"(%[[K]], %{{.*}}, %{{.*}}, %{{.*}}) {axis = 0 : i64}
// CHECK: %[[Y:.*]] = "migraphx.resize"(%arg0, %[[T]]) {{.*}}mode = "linear"{{.*}} : (tensor<?x?x?x3xf32>, tensor<4xi64>) -> tensor<?x?x?x3xf32>
// CHECK: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @to_sizes_of_another(%x: tensor<?x?x?x3xf32>, %q: tensor<1x4x?x?xf32>) -> tensor<?x3x?x?xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x?x?x3xf32>) -> tensor<?x3x?x?xf32>
  %1 = "migraphx.literal"() {value = dense<-1> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = "migraphx.dimensions_of"(%q) {start = 2 : i64, end = 4 : i64} : (tensor<1x4x?x?xf32>) -> tensor<2xi64>
  %3 = "migraphx.concat"(%1, %2) {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %4 = "migraphx.resize"(%0, %3) {mode = "linear"} : (tensor<?x3x?x?xf32>, tensor<4xi64>) -> tensor<?x3x?x?xf32>
  return %4 : tensor<?x3x?x?xf32>
}

// -----

// What a nearest resize by a whole factor is.
// CHECK-LABEL: @repeated
// CHECK-NOT: migraphx.transpose
// CHECK: "migraphx.multibroadcast"({{.*}}) {{.*}} -> tensor<?x?x2x?x2x3xf32>
// CHECK: %[[Y:.*]] = "migraphx.reshape"({{.*}}) {{.*}} -> tensor<?x?x?x3xf32>
// CHECK-NEXT: "migraphx.transpose"(%[[Y]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func @repeated(%x: tensor<?x?x?x3xf32>) -> tensor<?x3x?x?xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x?x?x3xf32>) -> tensor<?x3x?x?xf32>
  %n = "migraphx.dimensions_of"(%0) {start = 0 : i64, end = 1 : i64} : (tensor<?x3x?x?xf32>) -> tensor<1xi64>
  %h = "migraphx.dimensions_of"(%0) {start = 2 : i64, end = 3 : i64} : (tensor<?x3x?x?xf32>) -> tensor<1xi64>
  %w = "migraphx.dimensions_of"(%0) {start = 3 : i64, end = 4 : i64} : (tensor<?x3x?x?xf32>) -> tensor<1xi64>
  %c = "migraphx.literal"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = "migraphx.literal"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "migraphx.literal"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = "migraphx.concat"(%n, %c, %h, %1, %w, %1) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xi64>
  %4 = "migraphx.reshape"(%0, %3) {dims = array<i64>} : (tensor<?x3x?x?xf32>, tensor<6xi64>) -> tensor<?x3x?x1x?x1xf32>
  %5 = "migraphx.concat"(%n, %c, %h, %2, %w, %2) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xi64>
  %6 = "migraphx.broadcast_with_dims"(%4, %5) : (tensor<?x3x?x1x?x1xf32>, tensor<6xi64>) -> tensor<?x3x?x2x?x2xf32>
  %7 = "migraphx.mul"(%h, %2) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %8 = "migraphx.mul"(%w, %2) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %9 = "migraphx.concat"(%n, %c, %7, %8) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  %10 = "migraphx.reshape"(%6, %9) {dims = array<i64>} : (tensor<?x3x?x2x?x2xf32>, tensor<4xi64>) -> tensor<?x3x?x?xf32>
  return %10 : tensor<?x3x?x?xf32>
}

// -----

// Near misses: sizes that an operand has, and scales, which may not be the quotient of the extents.
// CHECK-LABEL: @to_values
// CHECK: "migraphx.resize"(%{{.*}}, %arg1) {{.*}} : (tensor<?x3x?x?xf32>, tensor<4xi64>)
func.func @to_values(%x: tensor<?x?x?x3xf32>, %t: tensor<4xi64>) -> tensor<?x?x?x?xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x?x?x3xf32>) -> tensor<?x3x?x?xf32>
  %1 = "migraphx.resize"(%0, %t) {mode = "linear"} : (tensor<?x3x?x?xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>
  return %1 : tensor<?x?x?x?xf32>
}

// -----

// CHECK-LABEL: @by_scales
// CHECK: %[[S:.*]] = "migraphx.exp"(%arg1)
// CHECK: "migraphx.resize"(%{{.*}}, %[[S]]) {{.*}} : (tensor<?x3x?x?xf32>, tensor<4xf32>)
func.func @by_scales(%x: tensor<?x?x?x3xf32>, %t: tensor<4xf32>) -> tensor<?x?x?x?xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x?x?x3xf32>) -> tensor<?x3x?x?xf32>
  %s = "migraphx.exp"(%t) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "migraphx.resize"(%0, %s) {mode = "linear"} : (tensor<?x3x?x?xf32>, tensor<4xf32>) -> tensor<?x?x?x?xf32>
  return %1 : tensor<?x?x?x?xf32>
}
