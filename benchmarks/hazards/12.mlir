// Hazard 12: a padded window that moves along one axis stands in a region.
func.func @main(%x: tensor<4x9xf32>) -> tensor<4x5xf32> {
  %r = "flow.dispatch.region"() ({
    %least = arith.constant 0xFF800000 : f32
    %e = tensor.empty() : tensor<4x5xf32>
    %p = tensor.pad %x low[0, 1] high[0, 1] {
    ^bb0(%i: index, %j: index):
      tensor.yield %least : f32
    } : tensor<4x9xf32> to tensor<4x11xf32>
    %k = tensor.empty() : tensor<3xf32>
    %f = linalg.fill ins(%least : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(c, w, j) -> (c, w * 2 + j)>, affine_map<(c, w, j) -> (j)>, affine_map<(c, w, j) -> (c, w)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %k : tensor<4x11xf32>, tensor<3xf32>) outs(%f : tensor<4x5xf32>) {
    ^bb0(%in: f32, %size: f32, %acc: f32):
      %m = arith.maximumf %in, %acc : f32
      linalg.yield %m : f32
    } -> tensor<4x5xf32>
    "flow.return"(%y) : (tensor<4x5xf32>) -> ()
  }, {
  }) {operandSegmentSizes = array<i32: 0, 0>} : () -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
