// RUN: mgx-opt %s --mgx-simplify-algebra=all-forms=true --split-input-file | filecheck %s

// CHECK-LABEL: @broadcasts
// CHECK: %[[C:.*]] = "migraphx.concat"({{.*}}) {axis = 1 : i64} : (tensor<1x2xf32>, tensor<1x1xf32>)
// CHECK-NEXT: "migraphx.multibroadcast"(%[[C]]) {{.*}}out_lens = array<i64: 4, 3>
// CHECK-NEXT: return
func.func @broadcasts(%x: tensor<2xf32>, %y: tensor<1xf32>) -> tensor<4x3xf32> {
  %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 4, 2>} : (tensor<2xf32>) -> tensor<4x2xf32>
  %1 = "migraphx.multibroadcast"(%y) {out_lens = array<i64: 4, 1>} : (tensor<1xf32>) -> tensor<4x1xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<4x2xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: @pointwise
// CHECK-DAG: %[[A:.*]] = "migraphx.concat"(%arg0, %arg2) {axis = 0
// CHECK-DAG: %[[B:.*]] = "migraphx.concat"(%arg1, %arg0) {axis = 0
// CHECK: %[[M:.*]] = "migraphx.mul"(%[[A]], %[[B]])
// CHECK-NEXT: return %[[M]]
func.func @pointwise(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "migraphx.mul"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%z, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @packed
// CHECK: %[[C:.*]] = "migraphx.concat"(%arg0, %arg1) {axis = 1
// CHECK-NEXT: "migraphx.unpack_int4"(%[[C]]) {axis = 1
func.func @packed(%x: tensor<2x1xi8>, %y: tensor<2x2xi8>) -> tensor<2x6xi8> {
  %0 = "migraphx.unpack_int4"(%x) {axis = 1 : i64} : (tensor<2x1xi8>) -> tensor<2x2xi8>
  %1 = "migraphx.unpack_int4"(%y) {axis = 1 : i64} : (tensor<2x2xi8>) -> tensor<2x4xi8>
  %2 = "migraphx.concat"(%0, %1) {axis = 1 : i64} : (tensor<2x2xi8>, tensor<2x4xi8>) -> tensor<2x6xi8>
  return %2 : tensor<2x6xi8>
}

// -----

// Near misses: another op, another source type, attributes that differ, a value with other uses.
// CHECK-LABEL: @ops
// CHECK-COUNT-2: -> tensor<2xf32>
// CHECK-NEXT: migraphx.concat
func.func @ops(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "migraphx.relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.neg"(%y) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @types
// CHECK-COUNT-2: migraphx.convert
// CHECK-NEXT: migraphx.concat
func.func @types(%x: tensor<2xf16>, %y: tensor<2xi32>) -> tensor<4xf32> {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xf16>) -> tensor<2xf32>
  %1 = "migraphx.convert"(%y) {target_type = f32} : (tensor<2xi32>) -> tensor<2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @slopes
// CHECK-COUNT-2: migraphx.leaky_relu
// CHECK-NEXT: migraphx.concat
func.func @slopes(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "migraphx.leaky_relu"(%x) {alpha = 0.1 : f64} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.leaky_relu"(%y) {alpha = 0.2 : f64} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @used
// CHECK-COUNT-2: migraphx.relu
// CHECK-NEXT: migraphx.concat
func.func @used(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
  %0 = "migraphx.relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.relu"(%y) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %0, %2 : tensor<2xf32>, tensor<4xf32>
}
