// Hazard 47: a matmul in f32 with a partial tile of rows adds to a row, on a GPU.
#row = affine_map<(i, j) -> (j)>
#out = affine_map<(i, j) -> (i, j)>
func.func @main(%a: tensor<196x240xf32>, %b: tensor<80x240xf32>, %bias: tensor<80xi32>) -> tensor<196x80xf32> {
  %r = "flow.dispatch.region"() ({
    %e = tensor.empty() : tensor<196x80xi32>
    %bits = linalg.generic {indexing_maps = [#row, #out], iterator_types = ["parallel", "parallel"]} ins(%bias : tensor<80xi32>) outs(%e : tensor<196x80xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<196x80xi32>
    %start = arith.bitcast %bits : tensor<196x80xi32> to tensor<196x80xf32>
    %c = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<196x240xf32>, tensor<80x240xf32>) outs(%start : tensor<196x80xf32>) attrs = {compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x4_F32, col_major = true>, padding = [64, 16, 128], promote_operands = [0, 1], reduction = [0, 0, 32], subgroup = [1, 1, 0], workgroup = [64, 16, 0]}>, translation_info = <pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [256, 1, 1] subgroup_size = 64>>} {
    ^bb0(%in: f32, %weight: f32, %sum: f32):
      %p = arith.mulf %in, %weight : f32
      %s = arith.addf %sum, %p : f32
      linalg.yield %s : f32
    } -> tensor<196x80xf32>
    "flow.return"(%c) : (tensor<196x80xf32>) -> ()
  }, {
  }) {operandSegmentSizes = array<i32: 0, 0>} : () -> tensor<196x80xf32>
  return %r : tensor<196x80xf32>
}
