// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce=quantized=true | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce | filecheck %s --check-prefix=OFF

// An 8-bit dot takes what follows it into its kernel.
// CHECK-LABEL: @main(
// CHECK: "migraphx.group"(%arg0, %arg1, %arg2)
// CHECK: migraphx.quant_dot
// CHECK: migraphx.convert
// CHECK: migraphx.mul
// CHECK: tag = "quant_dot"
// OFF-LABEL: @main(
// OFF-NOT: tag = "quant_dot"
// OFF: migraphx.pointwise
func.func @main(%x: tensor<4x8xi8>, %w: tensor<8x3xi8>, %s: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.quant_dot"(%x, %w) : (tensor<4x8xi8>, tensor<8x3xi8>) -> tensor<4x3xi32>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %2 = "migraphx.mul"(%1, %s) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}
