// RUN: mgx-opt %s --mgx-eliminate-data-type-for-gpu --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-eliminate-data-type-for-gpu='arch=gfx1030 disable-64bit=true' --split-input-file | filecheck %s --check-prefix=OLD

// f8 products stay where the hardware has them: fnuz types on gfx942.
// CHECK-LABEL: @f8
// CHECK: "migraphx.quant_dot"({{.*}}) : (tensor<2x2xf8E4M3FNUZ>, tensor<2x2xf8E4M3FNUZ>)
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x2xf32>, tensor<2x2xf32>)
// OLD-LABEL: @f8
// OLD-NOT: migraphx.quant_dot
func.func @f8(%x: tensor<2x2xf8E4M3FNUZ>, %y: tensor<2x2xf8E4M3FN>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = "migraphx.quant_dot"(%x, %x) : (tensor<2x2xf8E4M3FNUZ>, tensor<2x2xf8E4M3FNUZ>) -> tensor<2x2xf32>
  %1 = "migraphx.quant_dot"(%y, %y) : (tensor<2x2xf8E4M3FN>, tensor<2x2xf8E4M3FN>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// bf16 and 64-bit types elsewhere than in products stay, unless asked for or missing.
// CHECK-LABEL: @wide
// CHECK: "migraphx.relu"(%arg0) : (tensor<4xbf16>)
// CHECK: "migraphx.relu"(%arg1) : (tensor<4xi64>)
// OLD-LABEL: @wide
// OLD: "migraphx.relu"({{.*}}) : (tensor<4xf32>)
// OLD: "migraphx.relu"({{.*}}) : (tensor<4xi32>)
func.func @wide(%x: tensor<4xbf16>, %y: tensor<4xi64>) -> (tensor<4xbf16>, tensor<4xi64>) {
  %0 = "migraphx.relu"(%x) : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = "migraphx.relu"(%y) : (tensor<4xi64>) -> tensor<4xi64>
  return %0, %1 : tensor<4xbf16>, tensor<4xi64>
}

// -----

// Products of integers other than i8, and unsigned ones, in f32.
// CHECK-LABEL: @products
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK: "migraphx.quant_dot"(%arg2, %arg2)
func.func @products(%x: tensor<2x2xi64>, %y: tensor<2x2xui8>, %z: tensor<2x2xi8>) -> (tensor<2x2xi64>, tensor<2x2xi32>, tensor<2x2xi32>) {
  %0 = "migraphx.dot"(%x, %x) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
  %1 = "migraphx.quant_dot"(%y, %y) : (tensor<2x2xui8>, tensor<2x2xui8>) -> tensor<2x2xi32>
  %2 = "migraphx.quant_dot"(%z, %z) : (tensor<2x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi32>
  return %0, %1, %2 : tensor<2x2xi64>, tensor<2x2xi32>, tensor<2x2xi32>
}
