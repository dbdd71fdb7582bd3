// Hazard 42: the least of unsigned 64-bit integers along a dynamic dim on a GPU.
func.func @main(%x: tensor<?xi64>) -> tensor<i64> {
  %most = arith.constant -1 : i64
  %o = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%most : i64) outs(%o : tensor<i64>) -> tensor<i64>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<?xi64>) outs(%f : tensor<i64>) {
  ^bb0(%in: i64, %acc: i64):
    %a = arith.minui %in, %acc : i64
    linalg.yield %a : i64
  } -> tensor<i64>
  return %s : tensor<i64>
}
