// RUN: mgx-opt %s --mgx-simplify-qdq --split-input-file | filecheck %s

// The 8-bit integers are multiplied themselves.
// CHECK-LABEL: @plain
// CHECK-NEXT: %[[Q:.*]] = "migraphx.quant_dot"(%arg0, %arg1) : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK-NEXT: return %[[Q]]
func.func @plain(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %a = "migraphx.convert"(%x) {target_type = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %b = "migraphx.convert"(%w) {target_type = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

// ui8 values are 128 less as i8, and so is their zero point: 130 is 2, taken off the sums with
// those of the columns.
// CHECK-LABEL: @affine
// CHECK: "migraphx.convert"(%arg0) {target_type = i16}
// CHECK: %[[X:.*]] = "migraphx.convert"({{.*}}) {target_type = i8}
// CHECK: value = dense<2> : tensor<i32>
// CHECK: %[[Q:.*]] = "migraphx.quant_dot"(%[[X]], %arg1)
// CHECK: %[[N:.*]] = "migraphx.reduce_sum"{{.*}} -> tensor<1x4xi32>
// CHECK: %[[P:.*]] = "migraphx.mul"({{.*}}, %[[N]])
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%[[P]])
// CHECK: "migraphx.sub"(%[[Q]], %[[B]])
// CHECK-NOT: "migraphx.dot"
func.func @affine(%x: tensor<2x3xui8>, %w: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %z = "migraphx.literal"() {value = dense<130> : tensor<i32>} : () -> tensor<i32>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 2, 3>} : (tensor<i32>) -> tensor<2x3xi32>
  %a = "migraphx.convert"(%x) {target_type = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %c = "migraphx.sub"(%a, %zb) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  %b = "migraphx.convert"(%w) {target_type = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %0 = "migraphx.dot"(%c, %b) : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

// A zero point for each column, known at run time, and views between.
// CHECK-LABEL: @columns
// CHECK: %[[W:.*]] = "migraphx.transpose"(%arg1) {{.*}} : (tensor<4x3xi8>) -> tensor<3x4xi8>
// CHECK: %[[Q:.*]] = "migraphx.quant_dot"(%arg0, %[[W]])
// CHECK: "migraphx.reduce_sum"{{.*}} -> tensor<2x1xi32>
// CHECK: "migraphx.sub"(%[[Q]]
func.func @columns(%x: tensor<2x3xi8>, %w: tensor<4x3xi8>, %z: tensor<4xi32>) -> tensor<2x4xi32> {
  %zb = "migraphx.broadcast"(%z) {axis = 0 : i64, out_lens = array<i64: 4, 3>} : (tensor<4xi32>) -> tensor<4x3xi32>
  %a = "migraphx.convert"(%x) {target_type = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %b = "migraphx.convert"(%w) {target_type = i32} : (tensor<4x3xi8>) -> tensor<4x3xi32>
  %c = "migraphx.sub"(%b, %zb) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
  %t = "migraphx.transpose"(%c) {permutation = array<i64: 1, 0>} : (tensor<4x3xi32>) -> tensor<3x4xi32>
  %0 = "migraphx.dot"(%a, %t) : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

// It varies along what is summed.
// CHECK-LABEL: @along_the_sum
// CHECK: "migraphx.dot"
func.func @along_the_sum(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>, %z: tensor<3xi32>) -> tensor<2x4xi32> {
  %zb = "migraphx.broadcast"(%z) {axis = 1 : i64, out_lens = array<i64: 2, 3>} : (tensor<3xi32>) -> tensor<2x3xi32>
  %a = "migraphx.convert"(%x) {target_type = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %c = "migraphx.sub"(%a, %zb) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  %b = "migraphx.convert"(%w) {target_type = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %0 = "migraphx.dot"(%c, %b) : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

// 16-bit integers, and i32 ones, do not fit.
// CHECK-LABEL: @wider
// CHECK: "migraphx.dot"
func.func @wider(%x: tensor<2x3xi16>, %b: tensor<3x4xi32>) -> tensor<2x4xi32> {
  %a = "migraphx.convert"(%x) {target_type = i32} : (tensor<2x3xi16>) -> tensor<2x3xi32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

// In f32 sums are rounded.
// CHECK-LABEL: @floats
// CHECK: "migraphx.dot"
func.func @floats(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>) -> tensor<2x4xf32> {
  %a = "migraphx.convert"(%x) {target_type = f32} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %b = "migraphx.convert"(%w) {target_type = f32} : (tensor<3x4xi8>) -> tensor<3x4xf32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// A weight that is repeated over the batch is summed once.
// CHECK-LABEL: @repeated
// CHECK: %[[N:.*]] = "migraphx.reduce_sum"({{.*}}) {axes = array<i64: 0>} : (tensor<3x4xi32>) -> tensor<1x4xi32>
// CHECK: "migraphx.multibroadcast"(%[[N]]) {{.*}} -> tensor<5x1x4xi32>
func.func @repeated(%x: tensor<5x2x3xi8>, %w: tensor<3x4xi8>) -> tensor<5x2x4xi32> {
  %z = "migraphx.literal"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %zb = "migraphx.multibroadcast"(%z) {out_lens = array<i64: 5, 2, 3>} : (tensor<i32>) -> tensor<5x2x3xi32>
  %wb = "migraphx.multibroadcast"(%w) {out_lens = array<i64: 5, 3, 4>} : (tensor<3x4xi8>) -> tensor<5x3x4xi8>
  %c = "migraphx.convert"(%x) {target_type = i32} : (tensor<5x2x3xi8>) -> tensor<5x2x3xi32>
  %a = "migraphx.sub"(%c, %zb) : (tensor<5x2x3xi32>, tensor<5x2x3xi32>) -> tensor<5x2x3xi32>
  %b = "migraphx.convert"(%wb) {target_type = i32} : (tensor<5x3x4xi8>) -> tensor<5x3x4xi32>
  %0 = "migraphx.dot"(%a, %b) : (tensor<5x2x3xi32>, tensor<5x3x4xi32>) -> tensor<5x2x4xi32>
  return %0 : tensor<5x2x4xi32>
}
