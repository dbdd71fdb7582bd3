// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64 --split-input-file | filecheck %s

// A kernel is one region with one loop: broadcasts are maps, uniform literals are scalars.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: @main(
// CHECK: %[[R:.*]] = "flow.dispatch.region"() ({
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]]], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x3xf32>, tensor<3xf32>)
// CHECK: arith.addf
// CHECK: %[[C:.*]] = arith.constant 2.000000e+00 : f32
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
// CHECK: "flow.return"
// CHECK: return %[[R]]
func.func @kernel(%x: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.pointwise"(%x, %b) ({
  ^bb0(%a: tensor<4x3xf32>, %c: tensor<3xf32>):
    %l = "migraphx.literal"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %1 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 4, 3>} : (tensor<3xf32>) -> tensor<4x3xf32>
    %2 = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 4, 3>} : (tensor<1xf32>) -> tensor<4x3xf32>
    %3 = "migraphx.add"(%a, %1) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %4 = "migraphx.mul"(%3, %2) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "migraphx.yield"(%4) : (tensor<4x3xf32>) -> ()
  }) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// An operand that is only broadcast loses its extents of 1 ahead of the region: the map is then a
// projection.
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: @main(
// CHECK: %[[S:.*]] = tensor.collapse_shape %arg1 {{.*}} : tensor<1x3x1xf32> into tensor<3xf32>
// CHECK: "flow.dispatch.region"
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMN]], #{{.*}}]{{.*}} ins(%arg0, %[[S]]
func.func @units(%x: tensor<2x3x4xf32>, %b: tensor<1x3x1xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.pointwise"(%x, %b) ({
  ^bb0(%a: tensor<2x3x4xf32>, %c: tensor<1x3x1xf32>):
    %1 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3, 4>} : (tensor<1x3x1xf32>) -> tensor<2x3x4xf32>
    %2 = "migraphx.add"(%a, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    "migraphx.yield"(%2) : (tensor<2x3x4xf32>) -> ()
  }) : (tensor<2x3x4xf32>, tensor<1x3x1xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// Several results are one loop; equal ones are one result.
// CHECK-LABEL: @main(
// CHECK: %[[R:.*]]:2 = "flow.dispatch.region"() ({
// CHECK: %[[G:.*]]:2 = linalg.generic
// CHECK: "flow.return"(%[[G]]#0, %[[G]]#1)
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#0
func.func @results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0:3 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %1 = "migraphx.neg"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "migraphx.exp"(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "migraphx.max"(%1, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "migraphx.yield"(%1, %2, %3) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// 16-bit floats are computed in f32; signed and unsigned integers differ.
// CHECK-LABEL: @main(
// CHECK: arith.extf
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @half(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
  %0 = "migraphx.mul"(%x, %y) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

// CHECK-LABEL: @main(
// CHECK-SAME: %arg0: tensor<4xi8>, %arg1: tensor<4xi8>) -> tensor<4xi8>
// CHECK: arith.maxui
func.func @unsigned(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "migraphx.max"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// -----

// CHECK-LABEL: @main(
// CHECK: arith.maxsi
func.func @signed(%x: tensor<4xi8>, %y: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "migraphx.max"(%x, %y) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

// Run-time dims: the region is told the extents of its results.
// CHECK-LABEL: @main(
// CHECK: %[[D:.*]] = tensor.dim %arg0
// CHECK: "flow.dispatch.region"(%[[D]]) ({
// CHECK: }) {operandSegmentSizes = array<i32: 1, 0>} : (index) -> tensor<?x3xf32>
func.func @dynamic(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<?x3xf32>):
    %1 = "migraphx.tanh"(%a) : (tensor<?x3xf32>) -> tensor<?x3xf32>
    "migraphx.yield"(%1) : (tensor<?x3xf32>) -> ()
  }) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// Arithmetic on dims is done with scalars: no loop, no region.
// CHECK-LABEL: @main(
// CHECK-NOT: linalg
// CHECK-NOT: flow.dispatch.region
// CHECK: tensor.dim
// CHECK: arith.muli
// CHECK: tensor.from_elements
func.func @host(%x: tensor<?x3xf32>) -> tensor<2xi64> {
  %l = "migraphx.literal"() {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %d = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 2 : i64} : (tensor<?x3xf32>) -> tensor<2xi64>
  %0 = "migraphx.mul"(%d, %l) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----

// Rounding to bf16 is on the bits: the backend takes a conversion there and back for nothing.
// CHECK-LABEL: @main
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: arith.shrui
// CHECK: arith.addi
// CHECK: arith.andi
// CHECK: arith.bitcast %{{.*}} : i32 to f32
// CHECK: arith.select
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "migraphx.convert"(%x) {target_type = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
