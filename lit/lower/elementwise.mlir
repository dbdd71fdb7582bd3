// Pointwise kernels and transposes as vector loops.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s

// The dims that all have next to each other are one, and its tail is the only masked vector.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} {in_bounds = [true]} : tensor<35xf32>, vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: vector.transfer_read %{{[^{]*}} : tensor<35xf32>, vector<16xf32>
// CHECK-NOT: linalg
func.func @add(%x: tensor<5x7xf32>, %y: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %0 = "migraphx.pointwise"(%x, %y) ({
  ^bb0(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>):
    %1 = "migraphx.add"(%a, %b) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    "migraphx.yield"(%1) : (tensor<5x7xf32>) -> ()
  }) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  return %0 : tensor<5x7xf32>
}

// -----

// Rows that change places are copied as vectors.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: vector.transfer_read {{.*}} : tensor<512x12x64xf32>, vector<16xf32>
// CHECK: vector.transfer_write {{.*}} : vector<16xf32>
// CHECK-NOT: linalg
func.func @heads(%x: tensor<512x12x64xf32>) -> tensor<12x512x64xf32> {
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<512x12x64xf32>):
    %1 = "migraphx.transpose"(%a) {permutation = array<i64: 1, 0, 2>} : (tensor<512x12x64xf32>) -> tensor<12x512x64xf32>
    "migraphx.yield"(%1) : (tensor<12x512x64xf32>) -> ()
  }) {tag = "transpose"} : (tensor<512x12x64xf32>) -> tensor<12x512x64xf32>
  return %0 : tensor<12x512x64xf32>
}
