// RUN: mgx-opt %s --mgx-rewrite-low-precision --split-input-file | filecheck %s

// CHECK-LABEL: @div
// CHECK: %[[N:.*]] = "migraphx.literal"
// CHECK: %[[Q:.*]] = "migraphx.div"(%arg0, %[[N]])
// CHECK: "migraphx.mul"(%[[Q]], %arg0)
func.func @div(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %n = "migraphx.literal"() {value = dense<8.0> : tensor<4x8xf16>} : () -> tensor<4x8xf16>
  %0 = "migraphx.mul"(%x, %x) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %1 = "migraphx.div"(%0, %n) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  return %1 : tensor<4x8xf16>
}

// -----

// A power, and a product with the reciprocal: what simplify_algebra leaves of a quotient.
// CHECK-LABEL: @mul
// CHECK: %[[Q:.*]] = "migraphx.mul"(%arg0, %{{.*}})
// CHECK: "migraphx.mul"(%[[Q]], %arg0)
func.func @mul(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %two = "migraphx.literal"() {value = dense<2.0> : tensor<4x8xf16>} : () -> tensor<4x8xf16>
  %r = "migraphx.literal"() {value = dense<0.125> : tensor<1xf16>} : () -> tensor<1xf16>
  %n = "migraphx.multibroadcast"(%r) {out_lens = array<i64: 4, 8>} : (tensor<1xf16>) -> tensor<4x8xf16>
  %0 = "migraphx.pow"(%x, %two) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %1 = "migraphx.mul"(%n, %0) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  return %1 : tensor<4x8xf16>
}

// -----

// f32 and bf16 do not overflow so soon; a square that is a result too is computed anyway; what
// grows would overflow sooner; y * z is no square.
// CHECK-LABEL: @misses
// CHECK-NEXT: migraphx.literal
// CHECK-NEXT: migraphx.literal
// CHECK-NEXT: migraphx.literal
// CHECK-NEXT: "migraphx.mul"(%arg0, %arg0)
// CHECK-NEXT: migraphx.div
// CHECK-NEXT: "migraphx.mul"(%arg1, %arg1)
// CHECK-NEXT: migraphx.div
// CHECK-NEXT: "migraphx.mul"(%arg1, %arg1)
// CHECK-NEXT: migraphx.div
// CHECK-NEXT: "migraphx.mul"(%arg1, %arg2)
// CHECK-NEXT: migraphx.div
func.func @misses(%x: tensor<8xf32>, %y: tensor<8xf16>, %z: tensor<8xf16>) -> (tensor<8xf32>, tensor<8xf16>, tensor<8xf16>, tensor<8xf16>, tensor<8xf16>) {
  %n = "migraphx.literal"() {value = dense<8.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %m = "migraphx.literal"() {value = dense<8.0> : tensor<8xf16>} : () -> tensor<8xf16>
  %s = "migraphx.literal"() {value = dense<0.5> : tensor<8xf16>} : () -> tensor<8xf16>
  %0 = "migraphx.mul"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = "migraphx.div"(%0, %n) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = "migraphx.mul"(%y, %y) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %3 = "migraphx.div"(%2, %m) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %4 = "migraphx.mul"(%y, %y) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %5 = "migraphx.div"(%4, %s) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %6 = "migraphx.mul"(%y, %z) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  %7 = "migraphx.div"(%6, %m) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  return %1, %2, %3, %5, %7 : tensor<8xf32>, tensor<8xf16>, tensor<8xf16>, tensor<8xf16>, tensor<8xf16>
}
