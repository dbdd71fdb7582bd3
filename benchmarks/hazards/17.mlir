// Hazard 17: a select behind a dot reads bools.
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %mask: tensor<4x2xi1>, %y: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = "flow.dispatch.region"() ({
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x2xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
    %m = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x2xf32>) outs(%f : tensor<4x2xf32>) -> tensor<4x2xf32>
    %s = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%mask, %m, %y : tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
    ^bb0(%c: i1, %a: f32, %b: f32, %out: f32):
      %v = arith.select %c, %a, %b : f32
      linalg.yield %v : f32
    } -> tensor<4x2xf32>
    "flow.return"(%s) : (tensor<4x2xf32>) -> ()
  }, {
  }) {operandSegmentSizes = array<i32: 0, 0>} : () -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
