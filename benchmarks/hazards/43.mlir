// Hazard 43: powers are stored, and summed along a leading dynamic dim, on a GPU.
#all = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<?x8xf32>, %top: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %p = linalg.generic {indexing_maps = [#all, #col, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %top : tensor<?x8xf32>, tensor<8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%in: f32, %t: f32, %out: f32):
    %d = arith.subf %in, %t : f32
    %m = math.exp %d : f32
    linalg.yield %m : f32
  } -> tensor<?x8xf32>
  %o = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#all, #col], iterator_types = ["reduction", "parallel"]} ins(%p : tensor<?x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  } -> tensor<8xf32>
  return %p, %s : tensor<?x8xf32>, tensor<8xf32>
}
