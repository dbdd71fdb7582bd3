// RUN: mgx-opt %s --mgx-eliminate-convert --split-input-file | filecheck %s

// CHECK-LABEL: @same
// CHECK-NEXT: return %arg0
func.func @same(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @signedness
// CHECK-NEXT: migraphx.convert
func.func @signedness(%x: tensor<2xi8>) -> tensor<2xui8> {
  %0 = "migraphx.convert"(%x) {target_type = ui8} : (tensor<2xi8>) -> tensor<2xui8>
  return %0 : tensor<2xui8>
}
