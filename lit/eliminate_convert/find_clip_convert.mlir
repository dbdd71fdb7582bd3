// RUN: mgx-opt %s --mgx-eliminate-convert --split-input-file | filecheck %s

// A convert stops at the ends of its type by itself.
// CHECK-LABEL: @whole_range
// CHECK-NOT: migraphx.clip
// CHECK: "migraphx.convert"(%arg0) {target_type = ui8}
func.func @whole_range(%x: tensor<4xf32>) -> tensor<4xui8> {
  %l = "migraphx.literal"() {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %h = "migraphx.literal"() {value = dense<255.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "migraphx.clip"(%x, %l, %h) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "migraphx.convert"(%0) {target_type = ui8} : (tensor<4xf32>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// -----

// A narrower range stays.
// CHECK-LABEL: @narrower
// CHECK: migraphx.clip
func.func @narrower(%x: tensor<4xf32>) -> tensor<4xi8> {
  %l = "migraphx.literal"() {value = dense<-128.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %h = "migraphx.literal"() {value = dense<126.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "migraphx.clip"(%x, %l, %h) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "migraphx.convert"(%0) {target_type = i8} : (tensor<4xf32>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}
