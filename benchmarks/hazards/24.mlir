// Hazard 24: an assertion on a size.
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.constant 0 : index
  %d = tensor.dim %x, %0 : tensor<?xf32>
  %4 = arith.constant 4 : index
  %is = arith.cmpi eq, %d, %4 : index
  cf.assert %is, "four elements"
  return %x : tensor<?xf32>
}
