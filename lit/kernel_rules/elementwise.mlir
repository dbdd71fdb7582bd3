// The rule `elementwise` takes its kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels --split-input-file 2>&1 | filecheck %s

// CHECK: cpu::tanh: elementwise (
func.func @dynamic(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<?x3xf32>):
    %1 = "migraphx.tanh"(%a) : (tensor<?x3xf32>) -> tensor<?x3xf32>
    "migraphx.yield"(%1) : (tensor<?x3xf32>) -> ()
  }) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// Bools of dynamic dims are bytes, and a result may be read in the kernel as well.
// CHECK: cpu::logical_or_max_where: elementwise (
func.func @bools(%x: tensor<?x3xf32>, %z: tensor<?x3xf32>, %m: tensor<?x3xi1>) -> (tensor<?x3xf32>, tensor<?x3xi1>, tensor<?x3xf32>) {
  %0:3 = "migraphx.pointwise"(%x, %z, %m) ({
  ^bb0(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>, %c: tensor<?x3xi1>):
    %1 = "migraphx.logical_or"(%c, %c) : (tensor<?x3xi1>, tensor<?x3xi1>) -> tensor<?x3xi1>
    %2 = "migraphx.max"(%a, %b) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %3 = "migraphx.where"(%1, %2, %a) : (tensor<?x3xi1>, tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    "migraphx.yield"(%2, %1, %3) : (tensor<?x3xf32>, tensor<?x3xi1>, tensor<?x3xf32>) -> ()
  }) : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xi1>) -> (tensor<?x3xf32>, tensor<?x3xi1>, tensor<?x3xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x3xf32>, tensor<?x3xi1>, tensor<?x3xf32>
}
