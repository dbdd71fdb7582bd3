// Hazard 29: a scatter into an input, which is a result as well.
func.func @main(%x: tensor<4xf32>, %at: tensor<2x1xi32>, %u: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %at : tensor<2xf32>, tensor<2x1xi32>) outs(%x : tensor<4xf32>) {
  ^bb0(%new: f32, %old: f32):
    iree_linalg_ext.yield %new : f32
  } -> tensor<4xf32>
  return %y, %x : tensor<4xf32>, tensor<4xf32>
}
