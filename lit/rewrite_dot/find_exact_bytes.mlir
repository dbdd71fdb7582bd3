// RUN: mgx-opt %s --mgx-rewrite-dot=exact-bytes --split-input-file | filecheck %s

// 518 * 255 * 127 is below 2^24, and so is every sum.
// CHECK-LABEL: @two_of_run_time
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: %[[Y:.*]] = "migraphx.convert"(%arg1) {target_type = f32}
// CHECK: %[[D:.*]] = "migraphx.dot"(%[[X]], %[[Y]]) : (tensor<?x4x64xf32>, tensor<?x64x4xf32>) -> tensor<?x4x4xf32>
// CHECK: "migraphx.convert"(%[[D]]) {target_type = i32}
func.func @two_of_run_time(%x: tensor<?x4x64xui8>, %y: tensor<?x64x4xi8>) -> tensor<?x4x4xi32> {
  %0 = "migraphx.quant_dot"(%x, %y) : (tensor<?x4x64xui8>, tensor<?x64x4xi8>) -> tensor<?x4x4xi32>
  return %0 : tensor<?x4x4xi32>
}

// -----

// Near misses: sums that f32 rounds, of a dynamic depth, and a matrix that is packed.
// CHECK-LABEL: @deep
// CHECK-NOT: migraphx.dot
func.func @deep(%x: tensor<4x600xui8>, %y: tensor<600x4xi8>) -> tensor<4x4xi32> {
  %0 = "migraphx.quant_dot"(%x, %y) : (tensor<4x600xui8>, tensor<600x4xi8>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}

// -----

// CHECK-LABEL: @open
// CHECK-NOT: migraphx.dot
func.func @open(%x: tensor<4x?xui8>, %y: tensor<?x4xi8>) -> tensor<4x4xi32> {
  %0 = "migraphx.quant_dot"(%x, %y) : (tensor<4x?xui8>, tensor<?x4xi8>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}

// -----

// CHECK-LABEL: @weights
// CHECK-NOT: migraphx.dot
func.func @weights(%x: tensor<4x8xi8>) -> tensor<4x4xi32> {
  %w = "migraphx.literal"() {value = dense<3> : tensor<8x4xi8>} : () -> tensor<8x4xi8>
  %0 = "migraphx.quant_dot"(%x, %w) : (tensor<4x8xi8>, tensor<8x4xi8>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}
