// Hazard 9: a region gives its anchor's tensor and two more that are equal once folded.
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r:3 = "flow.dispatch.region"() ({
    %no = arith.constant false
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %g:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e, %e, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%in: f32, %o0: f32, %o1: f32, %o2: f32):
      %floor = math.floor %in : f32
      %less = arith.cmpf olt, %in, %zero : f32
      %never = arith.andi %no, %less : i1
      %a = arith.select %never, %in, %zero : f32
      %b = arith.select %never, %floor, %zero : f32
      linalg.yield %floor, %a, %b : f32, f32, f32
    } -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    "flow.return"(%g#0, %g#1, %g#2) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }, {
  }) {operandSegmentSizes = array<i32: 0, 0>} : () -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
