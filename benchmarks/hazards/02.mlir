// Hazard 2: a matmul and the sum of its rows are one region.
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<512x64xf32>, %y: tensor<64x512xf32>) -> tensor<512x512xf32> {
  %r = "flow.dispatch.region"() ({
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<512x512xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
    %m = linalg.matmul ins(%x, %y : tensor<512x64xf32>, tensor<64x512xf32>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
    %v = tensor.empty() : tensor<512xf32>
    %g = linalg.fill ins(%zero : f32) outs(%v : tensor<512xf32>) -> tensor<512xf32>
    %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%m : tensor<512x512xf32>) outs(%g : tensor<512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.addf %in, %out : f32
      linalg.yield %t : f32
    } -> tensor<512xf32>
    %q = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%m, %s : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
    ^bb0(%in: f32, %sum: f32, %out: f32):
      %t = arith.divf %in, %sum : f32
      linalg.yield %t : f32
    } -> tensor<512x512xf32>
    "flow.return"(%q) : (tensor<512x512xf32>) -> ()
  }, {
  }) {operandSegmentSizes = array<i32: 0, 0>} : () -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}
