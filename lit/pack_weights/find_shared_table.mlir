// RUN: mgx-opt %s --mgx-pack-weights --split-input-file | filecheck %s

// The table's rows are the columns of the matmul's codes, which are 128 less.
// CHECK-LABEL: @tied(
// CHECK-DAG: [[W:%.+]] = "migraphx.literal"() {value = dense<17> : tensor<64x96xi8>}
// CHECK-DAG: [[T:%.+]] = "migraphx.transpose"([[W]]) {permutation = array<i64: 1, 0>}
// CHECK: [[R:%.+]] = "migraphx.gather"([[T]], %arg1) {axis = 0 : i64} : (tensor<96x64xi8>, tensor<5xi64>)
// CHECK: [[I:%.+]] = "migraphx.convert"([[R]]) {{.*}}target_type = i32
// CHECK: [[S:%.+]] = "migraphx.add"([[I]], {{.*}})
// CHECK: "migraphx.convert"([[S]]) {{.*}}target_type = ui8
func.func @tied(%x: tensor<3x64xf32>, %i: tensor<5xi64>) -> (tensor<3x96xf32>, tensor<5x64xui8>) {
  %t = "migraphx.literal"() {value = dense<145> : tensor<96x64xui8>} : () -> tensor<96x64xui8>
  %w = "migraphx.literal"() {value = dense<145> : tensor<96x2x32xui8>} : () -> tensor<96x2x32xui8>
  %z = "migraphx.literal"() {value = dense<128.0> : tensor<96x64xf32>} : () -> tensor<96x64xf32>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<96x64xf32>} : () -> tensor<96x64xf32>
  %0 = "migraphx.gather"(%t, %i) {axis = 0 : i64} : (tensor<96x64xui8>, tensor<5xi64>) -> tensor<5x64xui8>
  %1 = "migraphx.reshape"(%w) {dims = array<i64: 96, 64>} : (tensor<96x2x32xui8>) -> tensor<96x64xui8>
  %2 = "migraphx.convert"(%1) {target_type = f32} : (tensor<96x64xui8>) -> tensor<96x64xf32>
  %3 = "migraphx.sub"(%2, %z) : (tensor<96x64xf32>, tensor<96x64xf32>) -> tensor<96x64xf32>
  %4 = "migraphx.mul"(%3, %s) : (tensor<96x64xf32>, tensor<96x64xf32>) -> tensor<96x64xf32>
  %5 = "migraphx.transpose"(%4) {permutation = array<i64: 1, 0>} : (tensor<96x64xf32>) -> tensor<64x96xf32>
  %6 = "migraphx.dot"(%x, %5) : (tensor<3x64xf32>, tensor<64x96xf32>) -> tensor<3x96xf32>
  return %6, %0 : tensor<3x96xf32>, tensor<5x64xui8>
}

// -----

// A table of other numbers stays.
// CHECK-LABEL: @apart(
// CHECK: "migraphx.gather"({{.*}}) {axis = 0 : i64} : (tensor<96x64xui8>, tensor<5xi64>)
func.func @apart(%x: tensor<3x64xf32>, %i: tensor<5xi64>) -> (tensor<3x96xf32>, tensor<5x64xui8>) {
  %t = "migraphx.literal"() {value = dense<146> : tensor<96x64xui8>} : () -> tensor<96x64xui8>
  %w = "migraphx.literal"() {value = dense<145> : tensor<64x96xui8>} : () -> tensor<64x96xui8>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<64x96xf32>} : () -> tensor<64x96xf32>
  %0 = "migraphx.gather"(%t, %i) {axis = 0 : i64} : (tensor<96x64xui8>, tensor<5xi64>) -> tensor<5x64xui8>
  %1 = "migraphx.convert"(%w) {target_type = f32} : (tensor<64x96xui8>) -> tensor<64x96xf32>
  %2 = "migraphx.mul"(%1, %s) : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %3 = "migraphx.dot"(%x, %2) : (tensor<3x64xf32>, tensor<64x96xf32>) -> tensor<3x96xf32>
  return %3, %0 : tensor<3x96xf32>, tensor<5x64xui8>
}
