// A block of queries has three heads that share keys and values, a register of queries each.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=znver4 | filecheck %s

// Four keys meet the three registers. Each head's rows are stored on their own.
// CHECK-LABEL: @main(
// CHECK: tensor.empty() : tensor<64x48xf32>
// CHECK: %[[K:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK-COUNT-12: math.fma
// CHECK: scf.yield
// CHECK-COUNT-3: iree_tensor_ext.dispatch.tensor.store
// CHECK-NOT: iree_tensor_ext.dispatch.tensor.store
// CHECK: return
func.func @shared(%q: tensor<6x96x64xf32>, %k: tensor<2x128x64xf32>, %v: tensor<2x128x64xf32>) -> tensor<6x96x64xf32> {
  %0 = "migraphx.group"(%q, %k, %v) ({
  ^bb0(%a: tensor<6x96x64xf32>, %b: tensor<2x128x64xf32>, %c: tensor<2x128x64xf32>):
    %b1 = "migraphx.unsqueeze"(%b) {axes = array<i64: 1>, steps = array<i64>} : (tensor<2x128x64xf32>) -> tensor<2x1x128x64xf32>
    %b2 = "migraphx.multibroadcast"(%b1) {out_dyn_dims = array<i64>, out_lens = array<i64: 2, 3, 128, 64>} : (tensor<2x1x128x64xf32>) -> tensor<2x3x128x64xf32>
    %b3 = "migraphx.reshape"(%b2) {dims = array<i64: 6, 128, 64>} : (tensor<2x3x128x64xf32>) -> tensor<6x128x64xf32>
    %c1 = "migraphx.unsqueeze"(%c) {axes = array<i64: 1>, steps = array<i64>} : (tensor<2x128x64xf32>) -> tensor<2x1x128x64xf32>
    %c2 = "migraphx.multibroadcast"(%c1) {out_dyn_dims = array<i64>, out_lens = array<i64: 2, 3, 128, 64>} : (tensor<2x1x128x64xf32>) -> tensor<2x3x128x64xf32>
    %c3 = "migraphx.reshape"(%c2) {dims = array<i64: 6, 128, 64>} : (tensor<2x3x128x64xf32>) -> tensor<6x128x64xf32>
    %t = "migraphx.transpose"(%b3) {permutation = array<i64: 0, 2, 1>} : (tensor<6x128x64xf32>) -> tensor<6x64x128xf32>
    %s = "migraphx.dot"(%a, %t) : (tensor<6x96x64xf32>, tensor<6x64x128xf32>) -> tensor<6x96x128xf32>
    %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<6x96x128xf32>) -> tensor<6x96x128xf32>
    %o = "migraphx.dot"(%p, %c3) : (tensor<6x96x128xf32>, tensor<6x128x64xf32>) -> tensor<6x96x64xf32>
    "migraphx.yield"(%o) : (tensor<6x96x64xf32>) -> ()
  }) {tag = "attention"} : (tensor<6x96x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>) -> tensor<6x96x64xf32>
  return %0 : tensor<6x96x64xf32>
}
