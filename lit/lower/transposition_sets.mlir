// RUN: mgx-opt --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file %s | filecheck %s

// Lines at distances of a power of two share sets of the cache, so rows are written to their ends.
// CHECK: scf.for %[[I:[a-z0-9]+]] = %c0 to %c64 step %c8
// CHECK: scf.for %[[J:[a-z0-9]+]] = %c0 to %c128 step %c8
// CHECK: vector.transfer_write {{.*}}{{\[}}%[[I]], %[[J]]{{\]}}
func.func @result_far_apart(%x: tensor<4096x64xf32>) -> tensor<64x4096xf32> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<4096x64xf32>):
    %1 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<4096x64xf32>) -> tensor<64x4096xf32>
    "migraphx.yield"(%1) : (tensor<64x4096xf32>) -> ()
  }) {tag = "transpose"} : (tensor<4096x64xf32>) -> tensor<64x4096xf32>
  return %0 : tensor<64x4096xf32>
}

// -----

// Here those of the source are: rows are read to their ends.
// CHECK: scf.for %[[I:[a-z0-9]+]] = %c0 to %c64 step %c8
// CHECK: scf.for %[[J:[a-z0-9]+]] = %c0 to %c64 step %c8
// CHECK: vector.transfer_write {{.*}}{{\[}}%[[J]], %[[I]]{{\]}}
func.func @source_far_apart(%x: tensor<64x4096xf32>) -> tensor<4096x64xf32> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<64x4096xf32>):
    %1 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<64x4096xf32>) -> tensor<4096x64xf32>
    "migraphx.yield"(%1) : (tensor<4096x64xf32>) -> ()
  }) {tag = "transpose"} : (tensor<64x4096xf32>) -> tensor<4096x64xf32>
  return %0 : tensor<4096x64xf32>
}

// -----

// Two tiles of 48 columns, none of 64 that would overlap.
// CHECK: tensor.empty() : tensor<48x168xf32>
func.func @even_tiles(%x: tensor<3136x96xf32>) -> tensor<96x3136xf32> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<3136x96xf32>):
    %1 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<3136x96xf32>) -> tensor<96x3136xf32>
    "migraphx.yield"(%1) : (tensor<96x3136xf32>) -> ()
  }) {tag = "transpose"} : (tensor<3136x96xf32>) -> tensor<96x3136xf32>
  return %0 : tensor<96x3136xf32>
}
