// Hazard 10: a window has one step along an axis whose input is longer than the window.
#in = affine_map<(n, c, h, w, i, j) -> (n, c, h * 5 + i, w * 3 + j)>
#window = affine_map<(n, c, h, w, i, j) -> (i, j)>
#out = affine_map<(n, c, h, w, i, j) -> (n, c, h, w)>
func.func @main(%x: tensor<1x2x7x9xf32>) -> tensor<1x2x1x3xf32> {
  %least = arith.constant 0xFF800000 : f32
  %k = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<1x2x1x3xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<1x2x1x3xf32>) -> tensor<1x2x1x3xf32>
  %y = linalg.generic {indexing_maps = [#in, #window, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : tensor<1x2x7x9xf32>, tensor<3x3xf32>) outs(%f : tensor<1x2x1x3xf32>) {
  ^bb0(%in: f32, %size: f32, %acc: f32):
    %m = arith.maximumf %in, %acc : f32
    linalg.yield %m : f32
  } -> tensor<1x2x1x3xf32>
  return %y : tensor<1x2x1x3xf32>
}
