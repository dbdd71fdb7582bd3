// RUN: mgx-opt %s --mgx-lower-to-linalg=vector-kernels=false --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg=regions=false --split-input-file | filecheck %s --check-prefix=FREE

// A dot with its bias and activation: one region, the weight is a parameter loaded outside.
// CHECK-LABEL: @main(
// CHECK: %[[R:.*]] = "flow.dispatch.region"() ({
// CHECK: linalg.matmul
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK-NOT: linalg.generic
// CHECK: "flow.return"
// CHECK: return %[[R]]
// FREE-LABEL: @main(
// FREE-NOT: flow.dispatch.region
// FREE: linalg.matmul
func.func @dot(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = "migraphx.group"(%x, %w, %b) ({
  ^bb0(%a: tensor<4x8xf32>, %v: tensor<8x2xf32>, %c: tensor<2xf32>):
    %1 = "migraphx.dot"(%a, %v) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %2 = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 4, 2>} : (tensor<2xf32>) -> tensor<4x2xf32>
    %3 = "migraphx.add"(%1, %2) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %4 = "migraphx.relu"(%3) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    "migraphx.yield"(%4) : (tensor<4x2xf32>) -> ()
  }) {tag = "dot"} : (tensor<4x8xf32>, tensor<8x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// The reduction and what is done with it, over the rows.
// CHECK-LABEL: @main(
// CHECK: "flow.dispatch.region"() ({
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK: arith.subf
// CHECK: "flow.return"
// FREE-LABEL: @main(
// FREE-NOT: flow.dispatch.region
func.func @reduce(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %1 = "migraphx.reduce_max"(%a) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %2 = "migraphx.multibroadcast"(%1) {out_lens = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %3 = "migraphx.sub"(%a, %2) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    "migraphx.yield"(%3) : (tensor<4x8xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Large constants are parameters: a global each, loaded where the program starts.
// CHECK: ml_program.global private @w0(#flow.parameter.named<"model"::"w0"> : tensor<3x30xf32>) : tensor<3x30xf32>
// CHECK-LABEL: @main(
// CHECK: %[[W:.*]] = ml_program.global_load_const @w0
// CHECK: "flow.dispatch.region"
// CHECK: ins(%arg0, %[[W]]
func.func @parameter(%x: tensor<3x30xf32>) -> tensor<3x30xf32> {
  %w = "migraphx.literal"() {value = dense<"0x0000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F000000400000404000008040000000000000803F00000040000040400000804000000000"> : tensor<3x30xf32>} : () -> tensor<3x30xf32>
  %0 = "migraphx.pointwise"(%x, %w) ({
  ^bb0(%a: tensor<3x30xf32>, %b: tensor<3x30xf32>):
    %1 = "migraphx.mul"(%a, %b) : (tensor<3x30xf32>, tensor<3x30xf32>) -> tensor<3x30xf32>
    "migraphx.yield"(%1) : (tensor<3x30xf32>) -> ()
  }) : (tensor<3x30xf32>, tensor<3x30xf32>) -> tensor<3x30xf32>
  return %0 : tensor<3x30xf32>
}

// -----

// A reduction over a run-time extent is left to the compiler: a region around it does not compile.
// CHECK-LABEL: @main(
// CHECK-NOT: flow.dispatch.region
// CHECK: linalg.generic
func.func @dynamic_reduce(%x: tensor<?x8xf32>) -> tensor<?x1xf32> {
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<?x8xf32>) -> tensor<?x1xf32>
    "migraphx.yield"(%1) : (tensor<?x1xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// Integers that only change their sign are stored as they are: nothing is computed.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xi32>
// CHECK-NOT: flow.dispatch.region
// CHECK: return %[[X]]
func.func @nothing(%x: tensor<?x4xi32>) -> tensor<?x4xui32> {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<?x4xi32>):
    %1 = "migraphx.convert"(%a) {target_type = ui32} : (tensor<?x4xi32>) -> tensor<?x4xui32>
    "migraphx.yield"(%1) : (tensor<?x4xui32>) -> ()
  }) : (tensor<?x4xi32>) -> tensor<?x4xui32>
  return %0 : tensor<?x4xui32>
}
