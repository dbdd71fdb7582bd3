// Hazard 22: the sum of a fill, outside of regions.
func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %t = linalg.fill ins(%two : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %o = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%t : tensor<?xf32>) outs(%f : tensor<f32>) {
  ^bb0(%in: f32, %acc: f32):
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}
