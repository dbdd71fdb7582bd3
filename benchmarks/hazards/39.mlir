// Hazard 39: an attention of 8 queries on a GPU.
#q = affine_map<(b, m, d, k, n) -> (b, m, d)>
#k = affine_map<(b, m, d, k, n) -> (b, k, d)>
#v = affine_map<(b, m, d, k, n) -> (b, k, n)>
#scale = affine_map<(b, m, d, k, n) -> ()>
#out = affine_map<(b, m, d, k, n) -> (b, m, n)>
func.func @main(%q: tensor<4x8x64xf16>, %k: tensor<4x128x64xf16>, %v: tensor<4x128x64xf16>) -> tensor<4x8x64xf16> {
  %scale = arith.constant 0.125 : f16
  %e = tensor.empty() : tensor<4x8x64xf16>
  %y = "iree_linalg_ext.attention"(%q, %k, %v, %scale, %e) ({
  ^bb0(%s: f32):
    "iree_linalg_ext.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#q, #k, #v, #scale, #out]} : (tensor<4x8x64xf16>, tensor<4x128x64xf16>, tensor<4x128x64xf16>, f16, tensor<4x8x64xf16>) -> tensor<4x8x64xf16>
  return %y : tensor<4x8x64xf16>
}
