// Hazard 30: rows of two batches, divided by their sums, are the left side of a matmul.
#all = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>
func.func @main(%x: tensor<2x9x9xf32>, %v: tensor<2x9x16xf32>) -> tensor<2x9x16xf32> {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<2x9xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<2x9xf32>) -> tensor<2x9xf32>
  %sums = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<2x9x9xf32>) outs(%fr : tensor<2x9xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %s = arith.addf %in, %acc : f32
    linalg.yield %s : f32
  } -> tensor<2x9xf32>
  %ex = tensor.empty() : tensor<2x9x9xf32>
  %shares = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %sums : tensor<2x9x9xf32>, tensor<2x9xf32>) outs(%ex : tensor<2x9x9xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %s = arith.divf %in, %sum : f32
    linalg.yield %s : f32
  } -> tensor<2x9x9xf32>
  %ey = tensor.empty() : tensor<2x9x16xf32>
  %fy = linalg.fill ins(%zero : f32) outs(%ey : tensor<2x9x16xf32>) -> tensor<2x9x16xf32>
  %y = linalg.batch_matmul ins(%shares, %v : tensor<2x9x9xf32>, tensor<2x9x16xf32>) outs(%fy : tensor<2x9x16xf32>) -> tensor<2x9x16xf32>
  return %y : tensor<2x9x16xf32>
}
