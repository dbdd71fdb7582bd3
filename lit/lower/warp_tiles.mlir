// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=sm_90' --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=sm_86' --split-input-file | filecheck %s

// NVIDIA's instruction has a tile of 16x8. Rows of shared memory are padded, and three tiles of them
// held, by targets/worker_nvidia.py.
// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]{{.*}} ins({{.*}} : tensor<128x768xf16>, tensor<768x768xf16>)
// CHECK-SAME: mma_kind = #iree_gpu.mma_layout<NV_MMA_SYNC_F32_16x8x16_F16>
// CHECK-SAME: padding = [32, 32, 128]
// CHECK-SAME: reduction = [0, 0, 8], subgroup = [1, 2, 0], workgroup = [32, 32, 0]
// CHECK-SAME: workgroup_size = [128, 1, 1] subgroup_size = 32
// CHECK-SAME: prefetch_num_stages = 3, no_reduce_shared_memory_bank_conflicts = true
// CHECK-NOT: amdgpu
func.func @dot(%x: tensor<128x768xf16>) -> tensor<128x768xf16> {
  %w = "migraphx.literal"() {value = dense<1.0> : tensor<768x768xf16>} : () -> tensor<768x768xf16>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<128x768xf16>, %b: tensor<768x768xf16>):
    %1 = "migraphx.dot"(%a, %b) : (tensor<128x768xf16>, tensor<768x768xf16>) -> tensor<128x768xf16>
    "migraphx.yield"(%1) : (tensor<128x768xf16>) -> ()
  }) {tag = "dot"} : (tensor<128x768xf16>, tensor<768x768xf16>) -> tensor<128x768xf16>
  return %0 : tensor<128x768xf16>
}
