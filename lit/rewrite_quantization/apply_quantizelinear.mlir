// RUN: mgx-opt %s --mgx-rewrite-quantization --split-input-file | filecheck %s

// CHECK-LABEL: @int8
// CHECK-NEXT: %[[D:.*]] = "migraphx.div"(%arg0, %arg1)
// CHECK-NEXT: %[[R:.*]] = "migraphx.nearbyint"(%[[D]])
// CHECK-NEXT: %[[Z:.*]] = "migraphx.convert"(%arg2) {target_type = f32}
// CHECK-NEXT: %[[S:.*]] = "migraphx.add"(%[[R]], %[[Z]])
// CHECK: %[[C:.*]] = "migraphx.clip"(%[[S]],
// CHECK-NEXT: "migraphx.convert"(%[[C]]) {target_type = i8}
func.func @int8(%x: tensor<4x8xf32>, %s: tensor<4x8xf32>, %z: tensor<4x8xi8>) -> tensor<4x8xi8> {
  %0 = "migraphx.quantizelinear"(%x, %s, %z) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi8>) -> tensor<4x8xi8>
  return %0 : tensor<4x8xi8>
}

// -----

// No zero point, 16 bits: everything between is in f32.
// CHECK-LABEL: @half
// CHECK-NOT: migraphx.quantizelinear
// CHECK: "migraphx.div"{{.*}} -> tensor<8xf32>
// CHECK-NOT: migraphx.add
// CHECK: {target_type = ui8}
func.func @half(%x: tensor<8xf16>, %s: tensor<8xf16>) -> tensor<8xui8> {
  %0 = "migraphx.quantizelinear"(%x, %s) : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xui8>
  return %0 : tensor<8xui8>
}

// -----

// The ends of i32 are no numbers of f32: the convert stops there. f8 is rounded but once.
// CHECK-LABEL: @no_clip
// CHECK-NOT: migraphx.clip
// CHECK: migraphx.nearbyint
// CHECK-NOT: migraphx.clip
// CHECK: {target_type = i32}
// CHECK-NOT: migraphx.nearbyint
// CHECK: {target_type = f8E4M3FN}
func.func @no_clip(%x: tensor<8xf32>, %s: tensor<8xf32>) -> (tensor<8xi32>, tensor<8xf8E4M3FN>) {
  %0 = "migraphx.quantizelinear"(%x, %s) {out_type = i32} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi32>
  %1 = "migraphx.quantizelinear"(%x, %s) {out_type = f8E4M3FN} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf8E4M3FN>
  return %0, %1 : tensor<8xi32>, tensor<8xf8E4M3FN>
}
