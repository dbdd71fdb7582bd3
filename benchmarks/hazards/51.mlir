// Hazard 51: on GPUs a loop without vectors reads a row of dynamic length, not the first one.
#rows = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<?xf32>, %edges: tensor<2x?xi64>) -> tensor<?x1xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %edges, %c1 : tensor<2x?xi64>
  %length = tensor.dim %x, %c0 : tensor<?xf32>
  %row = tensor.extract_slice %edges[1, 0] [1, %n] [1, 1] : tensor<2x?xi64> to tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x1xf32>
  %r = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]} ins(%row : tensor<?xi64>) outs(%e : tensor<?x1xf32>) {
  ^bb0(%in: i64, %out: f32):
    %i = arith.index_cast %in : i64 to index
    %some = arith.cmpi sgt, %length, %c0 : index
    %v = scf.if %some -> (f32) {
      %read = tensor.extract %x[%i] : tensor<?xf32>
      scf.yield %read : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %v : f32
  } -> tensor<?x1xf32>
  return %r : tensor<?x1xf32>
}
