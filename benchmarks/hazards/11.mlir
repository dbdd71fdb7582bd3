// Hazard 11: a strided window and the caller read one loop of dynamic dims, outside of regions.
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %least = arith.constant 0xFF800000 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  %n1 = arith.addi %n, %c1 : index
  %h = arith.divui %n1, %c2 : index
  %k = tensor.empty() : tensor<1xf32>
  %o = tensor.empty(%h) : tensor<?xf32>
  %f = linalg.fill ins(%least : f32) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 2 + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%y, %k : tensor<?xf32>, tensor<1xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%in: f32, %size: f32, %acc: f32):
    %m = arith.maximumf %in, %acc : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  return %z, %y : tensor<?xf32>, tensor<?xf32>
}
