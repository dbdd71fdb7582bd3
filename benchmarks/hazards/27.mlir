// Hazard 27: elements of a slice with steps are read at computed indices.
func.func @main(%x: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.dim %x, %c0 : tensor<?x?xf32>
  %s = tensor.extract_slice %x[0, 0] [%a, %m] [1, 2] : tensor<?x?xf32> to tensor<?x?xf32>
  %one = arith.cmpi eq, %m, %c1 : index
  %e = tensor.empty(%a, %n) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.select %one, %c0, %j : index
    %v = tensor.extract %s[%i, %k] : tensor<?x?xf32>
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
