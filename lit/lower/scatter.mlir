// RUN: mgx-opt --mgx-lower-to-linalg --split-input-file %s | filecheck %s

// Updates keep their order (indices are not unique); an index out of range is clamped.
// CHECK-LABEL: @main(
// CHECK: arith.minsi
// CHECK-NOT: i1
// CHECK: "iree_linalg_ext.scatter"
// CHECK: ^bb0(%[[U:.*]]: f32, %{{.*}}: f32):
// CHECK: "iree_linalg_ext.yield"(%[[U]])
// CHECK: dimension_map = array<i64: 0, 1>, unique_indices = false} : (tensor<6xf32>, tensor<6x2xi64>, tensor<3x3xf32>) -> tensor<3x3xf32>
func.func @main(%x: tensor<3x3xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>) -> tensor<3x3xf32> {
  %0 = "migraphx.scatter_none"(%x, %i, %u) {axis = 0 : i64, skip_out_of_bounds = false} : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

// With skip_out_of_bounds the mask leaves it out.
// CHECK-LABEL: @main(
// CHECK: tensor.empty() : tensor<6xi1>
// CHECK: arith.cmpi ult
// CHECK: "iree_linalg_ext.scatter"
// CHECK: (tensor<6xf32>, tensor<6x2xi64>, tensor<6xi1>, tensor<3x3xf32>) -> tensor<3x3xf32>
func.func @main(%x: tensor<3x3xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>) -> tensor<3x3xf32> {
  %0 = "migraphx.scatter_none"(%x, %i, %u) {axis = 0 : i64, skip_out_of_bounds = true} : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

// 16-bit sums are kept in f32 and rounded once.
// CHECK-LABEL: @main(
// CHECK: arith.extf
// CHECK: "iree_linalg_ext.scatter"
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: arith.truncf
func.func @main(%x: tensor<3x4xf16>, %i: tensor<2x1xi64>, %u: tensor<2x4xf16>) -> tensor<3x4xf16> {
  %0 = "migraphx.scatternd_add"(%x, %i, %u) : (tensor<3x4xf16>, tensor<2x1xi64>, tensor<2x4xf16>) -> tensor<3x4xf16>
  return %0 : tensor<3x4xf16>
}

// -----

// A minimum rounds nothing: no conversion. Unsigned data compares unsigned.
// CHECK-LABEL: @main(
// CHECK: "iree_linalg_ext.scatter"
// CHECK: arith.minui %{{.*}}, %{{.*}} : i8
func.func @main(%x: tensor<3xui8>, %i: tensor<2x1xi64>, %u: tensor<2xui8>) -> tensor<3xui8> {
  %0 = "migraphx.scatternd_min"(%x, %i, %u) : (tensor<3xui8>, tensor<2x1xi64>, tensor<2xui8>) -> tensor<3xui8>
  return %0 : tensor<3xui8>
}

// -----

// No updates: the data.
// CHECK-LABEL: @main(
// CHECK-NOT: scatter
// CHECK: return %arg0
func.func @main(%x: tensor<3xf32>, %i: tensor<0x1xi64>, %u: tensor<0xf32>) -> tensor<3xf32> {
  %0 = "migraphx.scatternd_none"(%x, %i, %u) : (tensor<3xf32>, tensor<0x1xi64>, tensor<0xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
