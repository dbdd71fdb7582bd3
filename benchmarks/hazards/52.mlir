// Hazard 52: a reduction of elements at computed indices, on a GPU.
#pairs = affine_map<(i, j) -> (j)>
#each = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<1536xi32>) -> tensor<1536xi64> {
  %zero = arith.constant 0 : i64
  %span = tensor.empty() : tensor<1536xi64>
  %e = tensor.empty() : tensor<1536xi64>
  %f = linalg.fill ins(%zero : i64) outs(%e : tensor<1536xi64>) -> tensor<1536xi64>
  %y = linalg.generic {indexing_maps = [#pairs, #each], iterator_types = ["parallel", "reduction"]}
      ins(%span : tensor<1536xi64>) outs(%f : tensor<1536xi64>) {
  ^bb0(%s: i64, %total: i64):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a = tensor.extract %x[%i] : tensor<1536xi32>
    %b = tensor.extract %x[%j] : tensor<1536xi32>
    %same = arith.cmpi eq, %a, %b : i32
    %one = arith.extui %same : i1 to i64
    %next = arith.addi %total, %one : i64
    linalg.yield %next : i64
  } -> tensor<1536xi64>
  return %y : tensor<1536xi64>
}
