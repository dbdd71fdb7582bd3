// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s

// CHECK-LABEL: @recip_sqrt
// CHECK-NEXT: "migraphx.rsqrt"(%arg0)
// CHECK-NEXT: return
func.func @recip_sqrt(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.sqrt"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.recip"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// The other order is not it.
// CHECK-LABEL: @sqrt_recip
// CHECK-NEXT: migraphx.recip
// CHECK-NEXT: migraphx.sqrt
func.func @sqrt_recip(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.recip"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.sqrt"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
