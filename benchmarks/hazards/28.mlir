// Hazard 28: a column of two numbers.
func.func @main(%x: tensor<2xi64>) -> tensor<2x1xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.extract %x[%c0] : tensor<2xi64>
  %b = tensor.extract %x[%c1] : tensor<2xi64>
  %y = tensor.from_elements %a, %b : tensor<2x1xi64>
  return %y : tensor<2x1xi64>
}
