// RUN: mgx-opt %s --mgx-simplify-algebra=fast-math=true --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s --check-prefix=STRICT

// CHECK-LABEL: @log_exp
// CHECK-NEXT: return %arg0
// exp(x) may overflow.
// STRICT-LABEL: @log_exp
// STRICT-NEXT: migraphx.exp
// STRICT-NEXT: migraphx.log
func.func @log_exp(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.log"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// exp(log(x)) is not x for x < 0.
// CHECK-LABEL: @exp_log
// CHECK-NEXT: migraphx.log
// CHECK-NEXT: migraphx.exp
func.func @exp_log(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.log"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.exp"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
