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

// -----

// What reads no tensor is copied by a kernel that hides that it is a copy: IREE computes it again
// wherever it is read.
// CHECK-LABEL: func.func @main(
// CHECK: %[[FILL:.*]] = linalg.fill
// CHECK: "util.optimization_barrier"(%[[FILL]])
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK: arith.select
// CHECK: "iree_linalg_ext.scatter"({{.*}}, %[[COPY]])
func.func @main(%i: tensor<?x1xi64>, %u: tensor<?xi64>) -> tensor<?xi64> {
  %0 = "migraphx.literal"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %1 = "migraphx.dimensions_of"(%u) {start = 0 : i64, end = 1 : i64} : (tensor<?xi64>) -> tensor<1xi64>
  %2 = "migraphx.broadcast_with_dims"(%0, %1) : (tensor<i64>, tensor<1xi64>) -> tensor<?xi64>
  %3 = "migraphx.scatternd_none"(%2, %i, %u) : (tensor<?xi64>, tensor<?x1xi64>, tensor<?xi64>) -> tensor<?xi64>
  return %3 : tensor<?xi64>
}

// -----

// Near miss: what is computed from a tensor of another type is scattered into where it lies.
// CHECK-LABEL: func.func @main(
// CHECK: %[[DATA:.*]] = linalg.generic
// CHECK: arith.sitofp
// CHECK-NOT: "util.optimization_barrier"
// CHECK: "iree_linalg_ext.scatter"({{.*}}, %[[DATA]])
func.func @main(%x: tensor<8xi32>, %i: tensor<3x1xi64>, %u: tensor<3xf32>) -> tensor<8xf32> {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<8xi32>) -> tensor<8xf32>
  %1 = "migraphx.scatternd_none"(%0, %i, %u) : (tensor<8xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
