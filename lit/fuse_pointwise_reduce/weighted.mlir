// RUN: mgx-opt %s --mgx-fuse-pointwise-reduce=weighted=true | filecheck %s

// An 8-bit dot of a constant takes what follows it into its kernel, one of two computed operands
// stays alone.
// CHECK-LABEL: @main(
// CHECK: migraphx.group
// CHECK: "migraphx.quant_dot"
// CHECK: "migraphx.convert"
// CHECK: tag = "quant_dot"
// CHECK: %[[Q:.*]] = "migraphx.quant_dot"(%arg0, %arg1)
// CHECK: "migraphx.pointwise"(%[[Q]])
func.func @main(%x: tensor<4x8xi8>, %y: tensor<8x3xi8>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %w = "migraphx.literal"() {value = dense<"0x000102030405060708090A0B0C0D0E0F1011121314151617"> : tensor<8x3xi8>} : () -> tensor<8x3xi8>
  %0 = "migraphx.quant_dot"(%x, %w) : (tensor<4x8xi8>, tensor<8x3xi8>) -> tensor<4x3xi32>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %2 = "migraphx.quant_dot"(%x, %y) : (tensor<4x8xi8>, tensor<8x3xi8>) -> tensor<4x3xi32>
  %3 = "migraphx.convert"(%2) {target_type = f32} : (tensor<4x3xi32>) -> tensor<4x3xf32>
  return %1, %3 : tensor<4x3xf32>, tensor<4x3xf32>
}
