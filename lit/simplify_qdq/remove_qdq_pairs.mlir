// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// What is left of a pair is the range. (The inputs are whole numbers, which a scale of 1 keeps.)
// CHECK-LABEL: @pair
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg0)
// CHECK-NOT: migraphx.quantizelinear
// CHECK-DAG: dense<-128> : tensor<i8>
// CHECK-DAG: dense<127> : tensor<i8>
// CHECK: "migraphx.clip"(%[[X]], {{.*}}, {{.*}})
func.func @pair(%x: tensor<4xi32>) -> tensor<4xf32> {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %z = "migraphx.literal"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 4>} : (tensor<i8>) -> tensor<4xi8>
  %f = "migraphx.convert"(%x) {target_type = f32} : (tensor<4xi32>) -> tensor<4xf32>
  %q = "migraphx.quantizelinear"(%f, %sb, %zb) : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xi8>
  %0 = "migraphx.dequantizelinear"(%q, %sb, %zb) : (tensor<4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Through a pad with the zero point, which becomes one with 0.
// CHECK-LABEL: @moved
// CHECK: %[[P:.*]] = "migraphx.pad"({{.*}}value = 0.000000e+00
// CHECK-NOT: migraphx.quantizelinear
// CHECK: "migraphx.clip"(%[[P]]
func.func @moved(%x: tensor<4xi32>) -> tensor<6xf32> {
  %s = "migraphx.literal"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %z = "migraphx.literal"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
  %sb = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 4>} : (tensor<i8>) -> tensor<4xi8>
  %sc = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 6>} : (tensor<f32>) -> tensor<6xf32>
  %zc = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 6>} : (tensor<i8>) -> tensor<6xi8>
  %f = "migraphx.convert"(%x) {target_type = f32} : (tensor<4xi32>) -> tensor<4xf32>
  %q = "migraphx.quantizelinear"(%f, %sb, %zb) : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xi8>
  %p = "migraphx.pad"(%q) {pads = array<i64: 1, 1>, value = 3.0 : f64} : (tensor<4xi8>) -> tensor<6xi8>
  %0 = "migraphx.dequantizelinear"(%p, %sc, %zc) : (tensor<6xi8>, tensor<6xf32>, tensor<6xi8>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// Near misses: other scales; a value that is used in 8 bits too.
// CHECK-LABEL: @differs
// CHECK: migraphx.quantizelinear
// CHECK-NOT: migraphx.clip
func.func @differs(%x: tensor<4xf32>, %s: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %z = "migraphx.literal"() {value = dense<0> : tensor<4xi8>} : () -> tensor<4xi8>
  %q = "migraphx.quantizelinear"(%x, %s, %z) : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xi8>
  %0 = "migraphx.dequantizelinear"(%q, %t, %z) : (tensor<4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK: migraphx.quantizelinear
// CHECK-NOT: migraphx.clip
func.func @used(%x: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xf32>) {
  %z = "migraphx.literal"() {value = dense<1> : tensor<4xi8>} : () -> tensor<4xi8>
  %q = "migraphx.quantizelinear"(%x, %s, %z) : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xi8>
  %0 = "migraphx.dequantizelinear"(%q, %s, %z) : (tensor<4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  return %q, %0 : tensor<4xi8>, tensor<4xf32>
}
