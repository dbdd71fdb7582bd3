// RUN: mgx-opt %s --mgx-fuse-attention="min-wide=4" --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-attention="min-wide=4 splits=2" --split-input-file | filecheck %s --check-prefix=PARTS

// Three queries of f32 are fewer than four, unless keys have parts.
// CHECK-LABEL: @few
// CHECK-NOT: migraphx.group
// PARTS-LABEL: @few
// PARTS: migraphx.group
func.func @few(%q: tensor<2x3x8xf32>, %k: tensor<2x8x6xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x3x3xf32> {
  %s = "migraphx.dot"(%q, %k) : (tensor<2x3x8xf32>, tensor<2x8x6xf32>) -> tensor<2x3x6xf32>
  %p = "migraphx.softmax"(%s) {axis = -1 : i64} : (tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x3x6xf32>, tensor<2x6x3xf32>) -> tensor<2x3x3xf32>
  return %o : tensor<2x3x3xf32>
}

// -----

// CHECK-LABEL: @four
// CHECK: tag = "attention"
func.func @four(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32>, %v: tensor<2x6x3xf32>) -> tensor<2x4x3xf32> {
  %s = "migraphx.dot"(%q, %k) : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %p = "migraphx.softmax"(%s) {axis = -1 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>
  return %o : tensor<2x4x3xf32>
}

// -----

// 16 bits have matrix instructions.
// CHECK-LABEL: @narrow
// CHECK: tag = "attention"
func.func @narrow(%q: tensor<2x3x8xf16>, %k: tensor<2x8x6xf16>, %v: tensor<2x6x3xf16>) -> tensor<2x3x3xf16> {
  %s = "migraphx.dot"(%q, %k) : (tensor<2x3x8xf16>, tensor<2x8x6xf16>) -> tensor<2x3x6xf16>
  %p = "migraphx.softmax"(%s) {axis = -1 : i64} : (tensor<2x3x6xf16>) -> tensor<2x3x6xf16>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x3x6xf16>, tensor<2x6x3xf16>) -> tensor<2x3x3xf16>
  return %o : tensor<2x3x3xf16>
}
