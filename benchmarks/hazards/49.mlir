// Hazard 49: a scatter reads a loop of dynamic dims that widens integers.
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<?xi64>, %at: tensor<?x1xi64>, %u: tensor<?xi32>) -> tensor<?xi64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %u, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xi64>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%u : tensor<?xi32>) outs(%e : tensor<?xi64>) {
  ^bb0(%in: i32, %out: i64):
    %w = arith.extsi %in : i32 to i64
    linalg.yield %w : i64
  } -> tensor<?xi64>
  %y = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%wide, %at : tensor<?xi64>, tensor<?x1xi64>) outs(%x : tensor<?xi64>) {
  ^bb0(%new: i64, %old: i64):
    iree_linalg_ext.yield %new : i64
  } -> tensor<?xi64>
  return %y : tensor<?xi64>
}
