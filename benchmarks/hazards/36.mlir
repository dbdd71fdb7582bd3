// Hazard 36: rows that a tensor counts are copied behind one more row.
func.func @main(%x: tensor<?xf32>, %n: tensor<i64>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %k = tensor.extract %n[] : tensor<i64>
  %c = arith.index_cast %k : i64 to index
  %s = tensor.extract_slice %x[0] [%c] [1] : tensor<?xf32> to tensor<?xf32>
  %p = tensor.pad %s low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %p : tensor<?xf32>
}
