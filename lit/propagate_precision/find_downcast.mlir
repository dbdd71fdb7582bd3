// RUN: mgx-opt %s --mgx-propagate-precision --split-input-file | filecheck %s

// Down past a scale, a shift and relu, to the dot.
// CHECK-LABEL: @chain
// CHECK: %[[G:.*]] = "migraphx.convert"({{.*}}) {target_type = f32}
// CHECK: %[[S:.*]] = "migraphx.mul"(%arg0, %[[G]]) {{.*}} -> tensor<4x4xf32>
// CHECK: %[[R:.*]] = "migraphx.relu"(%[[S]])
// CHECK: %[[Y:.*]] = "migraphx.convert"(%[[R]]) {target_type = f16}
// CHECK: "migraphx.dot"(%[[Y]], %arg1)
func.func @chain(%x: tensor<4x4xf32>, %w: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %c = "migraphx.literal"() {value = dense<3.0> : tensor<1xf16>} : () -> tensor<1xf16>
  %g = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 4, 4>} : (tensor<1xf16>) -> tensor<4x4xf16>
  %0 = "migraphx.convert"(%x) {target_type = f16} : (tensor<4x4xf32>) -> tensor<4x4xf16>
  %1 = "migraphx.mul"(%0, %g) : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
  %2 = "migraphx.relu"(%1) : (tensor<4x4xf16>) -> tensor<4x4xf16>
  %3 = "migraphx.dot"(%2, %w) : (tensor<4x4xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  return %3 : tensor<4x8xf16>
}

// -----

// A square reads the converted value twice.
// CHECK-LABEL: @square
// CHECK: "migraphx.mul"(%arg0, %arg0) {{.*}} -> tensor<4xf32>
func.func @square(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = "migraphx.convert"(%x) {target_type = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = "migraphx.mul"(%0, %0) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// -----

// Another tensor; another reader; a comparison; a condition; integers; from f64.
// CHECK-LABEL: @misses
// CHECK-COUNT-6: migraphx.convert
// CHECK-NOT: migraphx.convert
func.func @misses(%x: tensor<8xf32>, %y: tensor<8xf16>, %i: tensor<8xi32>, %d: tensor<8xf64>, %c: tensor<8xi1>) -> (tensor<8xf16>, tensor<8xf16>, tensor<8xf16>, tensor<8xf16>, tensor<8xi8>, tensor<8xf32>, tensor<8xf16>) {
  %one = "migraphx.literal"() {value = dense<1.0> : tensor<8xf16>} : () -> tensor<8xf16>
  %0 = "migraphx.convert"(%x) {target_type = f16} : (tensor<8xf32>) -> tensor<8xf16>
  %1 = "migraphx.add"(%0, %y) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %2 = "migraphx.convert"(%x) {target_type = f16} : (tensor<8xf32>) -> tensor<8xf16>
  %3 = "migraphx.neg"(%2) : (tensor<8xf16>) -> tensor<8xf16>
  %4 = "migraphx.convert"(%x) {target_type = f16} : (tensor<8xf32>) -> tensor<8xf16>
  %5 = "migraphx.less"(%4, %one) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %6 = "migraphx.convert"(%i) {target_type = i8} : (tensor<8xi32>) -> tensor<8xi8>
  %7 = "migraphx.neg"(%6) : (tensor<8xi8>) -> tensor<8xi8>
  %8 = "migraphx.convert"(%d) {target_type = f32} : (tensor<8xf64>) -> tensor<8xf32>
  %9 = "migraphx.neg"(%8) : (tensor<8xf32>) -> tensor<8xf32>
  %10 = "migraphx.convert"(%x) {target_type = f16} : (tensor<8xf32>) -> tensor<8xf16>
  %11 = "migraphx.where"(%c, %10, %one) : (tensor<8xi1>, tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  return %1, %2, %3, %5, %7, %9, %11 : tensor<8xf16>, tensor<8xf16>, tensor<8xf16>, tensor<8xf16>, tensor<8xi8>, tensor<8xf32>, tensor<8xf16>
}
