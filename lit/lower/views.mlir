// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64 --split-input-file | filecheck %s

// CHECK-LABEL: @main(
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1]] : tensor<4x6xf32> into tensor<24xf32>
// CHECK: tensor.expand_shape %[[C]] {{\[\[}}0, 1, 2]] output_shape [3, 2, 4] : tensor<24xf32> into tensor<3x2x4xf32>
func.func @reshape(%x: tensor<4x6xf32>) -> tensor<3x2x4xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 3, 2, 4>} : (tensor<4x6xf32>) -> tensor<3x2x4xf32>
  return %0 : tensor<3x2x4xf32>
}

// -----

// Dims that group are regrouped without a detour.
// CHECK-LABEL: @main(
// CHECK: tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [4, 2, 3]
// CHECK-NOT: tensor.collapse_shape
func.func @split(%x: tensor<4x6xf32>) -> tensor<4x2x3xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: 0, 2, -1>} : (tensor<4x6xf32>) -> tensor<4x2x3xf32>
  return %0 : tensor<4x2x3xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: %[[D:.*]] = tensor.dim %arg0
// CHECK: tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [%[[D]], 2, 3] : tensor<?x6xf32> into tensor<?x2x3xf32>
func.func @dynamic_split(%x: tensor<?x6xf32>) -> tensor<?x2x3xf32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64: -1, 2, 3>} : (tensor<?x6xf32>) -> tensor<?x2x3xf32>
  return %0 : tensor<?x2x3xf32>
}

// -----

// Extents of 1 come and go as maps inside of a loop.
// CHECK-DAG: #[[MAP:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: @main(
// CHECK: "flow.dispatch.region"
// CHECK-NOT: expand_shape
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[MAP]], #{{.*}}]
func.func @unsqueeze(%x: tensor<4x3xf32>, %y: tensor<3xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.pointwise"(%x, %y) ({
  ^bb0(%a: tensor<4x3xf32>, %b: tensor<3xf32>):
    %1 = "migraphx.unsqueeze"(%b) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<1x3xf32>
    %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 4, 3>} : (tensor<1x3xf32>) -> tensor<4x3xf32>
    %3 = "migraphx.add"(%a, %2) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "migraphx.yield"(%3) : (tensor<4x3xf32>) -> ()
  }) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// Dynamic dims: a kernel that computes what is reshaped holds no flow reshape, which IREE refuses.
// CHECK-LABEL: @main(
// CHECK: "flow.dispatch.region"
// CHECK-NOT: flow.tensor.reshape
// CHECK: "flow.return"
func.func @open_unsqueeze(%x: tensor<?x?xf32>, %y: tensor<?x?x1xf32>) -> (tensor<?x?xf32>, tensor<?x?x1xf32>) {
  %0:2 = "migraphx.pointwise"(%x, %y) ({
  ^bb0(%a: tensor<?x?xf32>, %b: tensor<?x?x1xf32>):
    %1 = "migraphx.exp"(%a) : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %2 = "migraphx.unsqueeze"(%1) {axes = array<i64: 2>} : (tensor<?x?xf32>) -> tensor<?x?x1xf32>
    %3 = "migraphx.add"(%2, %b) : (tensor<?x?x1xf32>, tensor<?x?x1xf32>) -> tensor<?x?x1xf32>
    "migraphx.yield"(%1, %3) : (tensor<?x?xf32>, tensor<?x?x1xf32>) -> ()
  }) : (tensor<?x?xf32>, tensor<?x?x1xf32>) -> (tensor<?x?xf32>, tensor<?x?x1xf32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?x1xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: "flow.dispatch.region"
// CHECK-NOT: flow.tensor.reshape
// CHECK: "flow.return"
func.func @open_squeeze(%x: tensor<?x1x?xf32>, %y: tensor<?x?xf32>) -> (tensor<?x1x?xf32>, tensor<?x?xf32>) {
  %0:2 = "migraphx.pointwise"(%x, %y) ({
  ^bb0(%a: tensor<?x1x?xf32>, %b: tensor<?x?xf32>):
    %1 = "migraphx.exp"(%a) : (tensor<?x1x?xf32>) -> tensor<?x1x?xf32>
    %2 = "migraphx.squeeze"(%1) {axes = array<i64: 1>} : (tensor<?x1x?xf32>) -> tensor<?x?xf32>
    %3 = "migraphx.add"(%2, %b) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
    "migraphx.yield"(%1, %3) : (tensor<?x1x?xf32>, tensor<?x?xf32>) -> ()
  }) : (tensor<?x1x?xf32>, tensor<?x?xf32>) -> (tensor<?x1x?xf32>, tensor<?x?xf32>)
  return %0#0, %0#1 : tensor<?x1x?xf32>, tensor<?x?xf32>
}

// -----

// A transpose is a generic, never the named op.
// CHECK-DAG: #[[MAP:.*]] = affine_map<(d0, d1, d2) -> (d2, d0, d1)>
// CHECK-LABEL: @main(
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#[[MAP]], #{{.*}}], {{.*}}} ins(%arg0 : tensor<2x3x4xf32>) outs(%{{.*}} : tensor<3x4x2xf32>)
func.func @transpose(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  return %0 : tensor<3x4x2xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<3xf32>) outs(%{{.*}} : tensor<2x3x4xf32>)
func.func @broadcast(%x: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %0 = "migraphx.broadcast"(%x) {axis = 1 : i64, out_lens = array<i64: 2, 3, 4>} : (tensor<3xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// Rank 0 both ways; nothing at all for what is the same tensor.
// CHECK-LABEL: @main(
// CHECK: tensor.collapse_shape %arg0 [] : tensor<1x1xf32> into tensor<f32>
func.func @rank_0(%x: tensor<1x1xf32>) -> tensor<f32> {
  %0 = "migraphx.reshape"(%x) {dims = array<i64>} : (tensor<1x1xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: @main(
// CHECK-NOT: tensor.
// CHECK: return %arg0
func.func @same(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.contiguous"(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "migraphx.reshape"(%0) {dims = array<i64: 4, 3>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
