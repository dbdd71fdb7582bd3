// A sum over dynamic dims is no kernel with other loops on NVIDIA GPUs, where IREE does not distribute it.
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg='target=gpu arch=sm_90' | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg='target=gpu arch=gfx942' | filecheck %s --check-prefix=AMD

// CHECK-LABEL: @main(
// CHECK-NOT: flow.dispatch.region
// CHECK: iterator_types = ["reduction"
// CHECK: return
// AMD-LABEL: @main(
// AMD: "flow.dispatch.region"
// AMD: iterator_types = ["reduction"
// AMD: "flow.return"
func.func @inside(%x: tensor<?x?xi32>) -> tensor<1x1xi64> {
  %z = "migraphx.literal"() {value = dense<0> : tensor<1x1xi64>} : () -> tensor<1x1xi64>
  %0 = "migraphx.mul"(%x, %x) : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi32>
  %1 = "migraphx.convert"(%0) {target_type = i64} : (tensor<?x?xi32>) -> tensor<?x?xi64>
  %2 = "migraphx.reduce_sum"(%1) {axes = array<i64: 0, 1>} : (tensor<?x?xi64>) -> tensor<1x1xi64>
  %3 = "migraphx.equal"(%2, %z) : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
  return %3 : tensor<1x1xi64>
}
