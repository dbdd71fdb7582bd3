// Hazard 1: the border of a relu is padded in the region that computes the relu.
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<8x8xf32>) -> tensor<10x10xf32> {
  %r = "flow.dispatch.region"() ({
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x8xf32>
    %relu = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %m = arith.maximumf %in, %zero : f32
      linalg.yield %m : f32
    } -> tensor<8x8xf32>
    %p = tensor.pad %relu low[1, 1] high[1, 1] {
    ^bb0(%i: index, %j: index):
      tensor.yield %zero : f32
    } : tensor<8x8xf32> to tensor<10x10xf32>
    "flow.return"(%p) : (tensor<10x10xf32>) -> ()
  }, {
  }) {operandSegmentSizes = array<i32: 0, 0>} : () -> tensor<10x10xf32>
  return %r : tensor<10x10xf32>
}
