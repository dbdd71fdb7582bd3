// Hazard 37: a convolution of dynamic dims in 8 bits, with a border of fives, on a GPU.
func.func @main(%x: tensor<?x?x?x16xi8>, %w: tensor<3x3x16x32xi8>) -> tensor<?x?x?x32xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %five = arith.constant 5 : i8
  %zero = arith.constant 0 : i32
  %n = tensor.dim %x, %c0 : tensor<?x?x?x16xi8>
  %h = tensor.dim %x, %c1 : tensor<?x?x?x16xi8>
  %v = tensor.dim %x, %c2 : tensor<?x?x?x16xi8>
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %five : i8
  } : tensor<?x?x?x16xi8> to tensor<?x?x?x16xi8>
  %o = tensor.empty(%n, %h, %v) : tensor<?x?x?x32xi32>
  %f = linalg.fill ins(%zero : i32) outs(%o : tensor<?x?x?x32xi32>) -> tensor<?x?x?x32xi32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<?x?x?x16xi8>, tensor<3x3x16x32xi8>) outs(%f : tensor<?x?x?x32xi32>) -> tensor<?x?x?x32xi32>
  return %c : tensor<?x?x?x32xi32>
}
