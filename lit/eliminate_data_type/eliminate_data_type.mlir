// RUN: mgx-opt %s --mgx-eliminate-data-type=types=int64,uint8 --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-eliminate-data-type='types=int64,uint8 target-type=int32 unsupported-ops=add' --split-input-file | filecheck %s --check-prefix=ADD

// CHECK-LABEL: @ops
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: %[[A:.*]] = "migraphx.add"(%[[X]], %[[X]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[B:.*]] = "migraphx.convert"(%[[A]]) {target_type = i64}
// CHECK: "migraphx.relu"({{.*}}) : (tensor<4xf32>)
// CHECK: "migraphx.gather"(%arg1, %arg2) {{.*}} : (tensor<4xf32>, tensor<2xi64>)
// ADD-LABEL: @ops
// ADD: "migraphx.add"({{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// ADD: "migraphx.relu"({{.*}}) : (tensor<4xi64>)
func.func @ops(%x: tensor<4xi64>, %y: tensor<4xf32>, %i: tensor<2xi64>) -> (tensor<4xi64>, tensor<2xf32>) {
  %0 = "migraphx.add"(%x, %x) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %1 = "migraphx.relu"(%0) : (tensor<4xi64>) -> tensor<4xi64>
  %2 = "migraphx.gather"(%y, %i) {axis = 0 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %1, %2 : tensor<4xi64>, tensor<2xf32>
}

// -----

// A quantised product becomes the general one, all of whose operands are of one type.
// CHECK-LABEL: @product
// CHECK-COUNT-2: {target_type = f32}
// CHECK: %[[D:.*]] = "migraphx.dot"({{.*}}) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
// CHECK: "migraphx.convert"(%[[D]]) {target_type = i32}
func.func @product(%x: tensor<2x2xui8>, %y: tensor<2x2xi8>) -> tensor<2x2xi32> {
  %0 = "migraphx.quant_dot"(%x, %y) : (tensor<2x2xui8>, tensor<2x2xi8>) -> tensor<2x2xi32>
  return %0 : tensor<2x2xi32>
}

// -----

// Near misses: other types; conversions and bits.
// CHECK-LABEL: @stay
// CHECK-NOT: f32
func.func @stay(%x: tensor<4xi32>, %y: tensor<4xi64>) -> (tensor<4xi32>, tensor<4xi8>, tensor<4xui64>) {
  %0 = "migraphx.neg"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  %1 = "migraphx.convert"(%y) {target_type = i8} : (tensor<4xi64>) -> tensor<4xi8>
  %2 = "migraphx.bit_cast"(%y) {target_type = ui64} : (tensor<4xi64>) -> tensor<4xui64>
  return %0, %1, %2 : tensor<4xi32>, tensor<4xi8>, tensor<4xui64>
}
