// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @times_one
// CHECK-NEXT: return %arg0
func.func @times_one(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = "migraphx.literal"() {value = dense<1.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %0 = "migraphx.mul"(%c, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Through broadcasts of one element.
// CHECK-LABEL: @plus_zero
// CHECK-NEXT: return %arg0
func.func @plus_zero(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = "migraphx.literal"() {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %b = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 2, 3>} : (tensor<1xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.add"(%x, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "migraphx.sub"(%0, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @by_one
// CHECK-NEXT: return %arg0
func.func @by_one(%x: tensor<4xi32>) -> tensor<4xi32> {
  %c = "migraphx.literal"() {value = dense<1> : tensor<4xi32>} : () -> tensor<4xi32>
  %0 = "migraphx.div"(%x, %c) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// Near misses: the unit on the wrong side, one element that is none.
// CHECK-LABEL: @one_by
// CHECK: migraphx.div
func.func @one_by(%x: tensor<4xi32>) -> tensor<4xi32> {
  %c = "migraphx.literal"() {value = dense<1> : tensor<4xi32>} : () -> tensor<4xi32>
  %0 = "migraphx.div"(%c, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// CHECK-LABEL: @not_all_one
// CHECK: migraphx.mul
func.func @not_all_one(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[1.0, 1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.mul"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// The least integer of the type; 0 is that of unsigned ones alone.
// CHECK-LABEL: @largest
// CHECK-NEXT: return %arg0
func.func @largest(%x: tensor<4xui8>) -> tensor<4xui8> {
  %c = "migraphx.literal"() {value = dense<0> : tensor<4xui8>} : () -> tensor<4xui8>
  %d = "migraphx.literal"() {value = dense<255> : tensor<4xui8>} : () -> tensor<4xui8>
  %0 = "migraphx.max"(%c, %x) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %1 = "migraphx.min"(%0, %d) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// -----

// CHECK-LABEL: @signed
// CHECK: migraphx.max
func.func @signed(%x: tensor<4xi8>) -> tensor<4xi8> {
  %c = "migraphx.literal"() {value = dense<0> : tensor<4xi8>} : () -> tensor<4xi8>
  %0 = "migraphx.max"(%c, %x) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
