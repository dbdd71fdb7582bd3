// RUN: mgx-opt --mgx-lower-to-linalg --split-input-file %s | filecheck %s

// A fill reads its value only; the buffer gives the dims.
// CHECK: affine_map<(d0, d1) -> ()>
// CHECK-LABEL: @main(
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<f32>) outs(%{{.*}} : tensor<2x3xf32>)
func.func @main(%v: tensor<f32>) -> tensor<2x3xf32> {
  %b = "migraphx.allocate"() {shape = tensor<2x3xf32>, operandSegmentSizes = array<i32: 0>} : () -> tensor<2x3xf32>
  %0 = "migraphx.fill"(%v, %b) : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: linalg.fill
func.func @main(%d: tensor<2xi64>) -> tensor<?x?xf16> {
  %0 = "migraphx.allocate"(%d) {buf_type = f16} : (tensor<2xi64>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}

// -----

// Samples count the running sums that do not exceed the drawn weight.
// CHECK-LABEL: @main(
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.cmpf ole
// CHECK: arith.minsi
func.func @main(%c: tensor<2x5xf32>, %r: tensor<2x8xf32>) -> tensor<2x8xi32> {
  %0 = "migraphx.multinomial"(%c, %r) {dtype = i32} : (tensor<2x5xf32>, tensor<2x8xf32>) -> tensor<2x8xi32>
  return %0 : tensor<2x8xi32>
}

// -----

// Signed halves keep their sign by an arithmetic shift.
// CHECK-LABEL: @main(
// CHECK: arith.andi
// CHECK: arith.shli
// CHECK: arith.shrsi
func.func @main(%x: tensor<2x2xi8>) -> tensor<2x4xi8> {
  %0 = "migraphx.unpack_int4"(%x) {axis = -1 : i64} : (tensor<2x2xi8>) -> tensor<2x4xi8>
  return %0 : tensor<2x4xi8>
}

// -----

// Values are limited to four bits before they share a byte.
// CHECK-LABEL: @main(
// CHECK: arith.minui
// CHECK: arith.shli
// CHECK: arith.ori
func.func @main(%x: tensor<2x4xui8>) -> tensor<2x2xui8> {
  %0 = "migraphx.pack_int4"(%x) {axis = -1 : i64} : (tensor<2x4xui8>) -> tensor<2x2xui8>
  return %0 : tensor<2x2xui8>
}
