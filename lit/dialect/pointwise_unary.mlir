// Pointwise operators of one operand: every op, static and dynamic dims, rank 0, several types.
// RUN: mgx-opt %s | filecheck %s

// CHECK-LABEL: @abs
func.func @abs(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xf16>) -> (tensor<2x3xf32>, tensor<?x3xf16>) {
  // CHECK: "migraphx.abs"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.abs"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.abs"(%arg1) : (tensor<?x3xf16>) -> tensor<?x3xf16>
  %1 = "migraphx.abs"(%arg1) : (tensor<?x3xf16>) -> tensor<?x3xf16>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf16>
}

// CHECK-LABEL: @acos
func.func @acos(%arg0: tensor<?x3xf32>, %arg1: tensor<bf16>) -> (tensor<?x3xf32>, tensor<bf16>) {
  // CHECK: "migraphx.acos"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.acos"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.acos"(%arg1) : (tensor<bf16>) -> tensor<bf16>
  %1 = "migraphx.acos"(%arg1) : (tensor<bf16>) -> tensor<bf16>
  return %0, %1 : tensor<?x3xf32>, tensor<bf16>
}

// CHECK-LABEL: @acosh
func.func @acosh(%arg0: tensor<f32>, %arg1: tensor<4xf64>) -> (tensor<f32>, tensor<4xf64>) {
  // CHECK: "migraphx.acosh"(%arg0) : (tensor<f32>) -> tensor<f32>
  %0 = "migraphx.acosh"(%arg0) : (tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.acosh"(%arg1) : (tensor<4xf64>) -> tensor<4xf64>
  %1 = "migraphx.acosh"(%arg1) : (tensor<4xf64>) -> tensor<4xf64>
  return %0, %1 : tensor<f32>, tensor<4xf64>
}

// CHECK-LABEL: @asin
func.func @asin(%arg0: tensor<4xf32>, %arg1: tensor<?x?xf8E4M3FN>) -> (tensor<4xf32>, tensor<?x?xf8E4M3FN>) {
  // CHECK: "migraphx.asin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.asin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.asin"(%arg1) : (tensor<?x?xf8E4M3FN>) -> tensor<?x?xf8E4M3FN>
  %1 = "migraphx.asin"(%arg1) : (tensor<?x?xf8E4M3FN>) -> tensor<?x?xf8E4M3FN>
  return %0, %1 : tensor<4xf32>, tensor<?x?xf8E4M3FN>
}

// CHECK-LABEL: @asinh
func.func @asinh(%arg0: tensor<?x?xf32>, %arg1: tensor<2x3xf16>) -> (tensor<?x?xf32>, tensor<2x3xf16>) {
  // CHECK: "migraphx.asinh"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.asinh"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.asinh"(%arg1) : (tensor<2x3xf16>) -> tensor<2x3xf16>
  %1 = "migraphx.asinh"(%arg1) : (tensor<2x3xf16>) -> tensor<2x3xf16>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xf16>
}

// CHECK-LABEL: @atan
func.func @atan(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xbf16>) -> (tensor<2x3xf32>, tensor<?x3xbf16>) {
  // CHECK: "migraphx.atan"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.atan"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.atan"(%arg1) : (tensor<?x3xbf16>) -> tensor<?x3xbf16>
  %1 = "migraphx.atan"(%arg1) : (tensor<?x3xbf16>) -> tensor<?x3xbf16>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xbf16>
}

// CHECK-LABEL: @atanh
func.func @atanh(%arg0: tensor<?x3xf32>, %arg1: tensor<f64>) -> (tensor<?x3xf32>, tensor<f64>) {
  // CHECK: "migraphx.atanh"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.atanh"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.atanh"(%arg1) : (tensor<f64>) -> tensor<f64>
  %1 = "migraphx.atanh"(%arg1) : (tensor<f64>) -> tensor<f64>
  return %0, %1 : tensor<?x3xf32>, tensor<f64>
}

// CHECK-LABEL: @ceil
func.func @ceil(%arg0: tensor<f32>, %arg1: tensor<4xbf16>) -> (tensor<f32>, tensor<4xbf16>) {
  // CHECK: "migraphx.ceil"(%arg0) : (tensor<f32>) -> tensor<f32>
  %0 = "migraphx.ceil"(%arg0) : (tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.ceil"(%arg1) : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = "migraphx.ceil"(%arg1) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0, %1 : tensor<f32>, tensor<4xbf16>
}

// CHECK-LABEL: @cos
func.func @cos(%arg0: tensor<4xf32>, %arg1: tensor<?x?xf16>) -> (tensor<4xf32>, tensor<?x?xf16>) {
  // CHECK: "migraphx.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.cos"(%arg1) : (tensor<?x?xf16>) -> tensor<?x?xf16>
  %1 = "migraphx.cos"(%arg1) : (tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0, %1 : tensor<4xf32>, tensor<?x?xf16>
}

// CHECK-LABEL: @cosh
func.func @cosh(%arg0: tensor<?x?xf32>, %arg1: tensor<2x3xbf16>) -> (tensor<?x?xf32>, tensor<2x3xbf16>) {
  // CHECK: "migraphx.cosh"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.cosh"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.cosh"(%arg1) : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
  %1 = "migraphx.cosh"(%arg1) : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xbf16>
}

// CHECK-LABEL: @elu
func.func @elu(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xf64>) -> (tensor<2x3xf32>, tensor<?x3xf64>) {
  // CHECK: "migraphx.elu"(%arg0) {alpha = 1.000000e+00 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.elu"(%arg0) {alpha = 1.000000e+00 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.elu"(%arg1) {alpha = 1.000000e+00 : f64} : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %1 = "migraphx.elu"(%arg1) {alpha = 1.000000e+00 : f64} : (tensor<?x3xf64>) -> tensor<?x3xf64>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf64>
}

// CHECK-LABEL: @erf
func.func @erf(%arg0: tensor<?x3xf32>, %arg1: tensor<f8E4M3FN>) -> (tensor<?x3xf32>, tensor<f8E4M3FN>) {
  // CHECK: "migraphx.erf"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.erf"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.erf"(%arg1) : (tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
  %1 = "migraphx.erf"(%arg1) : (tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
  return %0, %1 : tensor<?x3xf32>, tensor<f8E4M3FN>
}

// CHECK-LABEL: @exp
func.func @exp(%arg0: tensor<f32>, %arg1: tensor<4xf16>) -> (tensor<f32>, tensor<4xf16>) {
  // CHECK: "migraphx.exp"(%arg0) : (tensor<f32>) -> tensor<f32>
  %0 = "migraphx.exp"(%arg0) : (tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.exp"(%arg1) : (tensor<4xf16>) -> tensor<4xf16>
  %1 = "migraphx.exp"(%arg1) : (tensor<4xf16>) -> tensor<4xf16>
  return %0, %1 : tensor<f32>, tensor<4xf16>
}

// CHECK-LABEL: @floor
func.func @floor(%arg0: tensor<4xf32>, %arg1: tensor<?x?xbf16>) -> (tensor<4xf32>, tensor<?x?xbf16>) {
  // CHECK: "migraphx.floor"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.floor"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.floor"(%arg1) : (tensor<?x?xbf16>) -> tensor<?x?xbf16>
  %1 = "migraphx.floor"(%arg1) : (tensor<?x?xbf16>) -> tensor<?x?xbf16>
  return %0, %1 : tensor<4xf32>, tensor<?x?xbf16>
}

// CHECK-LABEL: @isinf
func.func @isinf(%arg0: tensor<?x?xf32>, %arg1: tensor<2x3xf64>) -> (tensor<?x?xi1>, tensor<2x3xi1>) {
  // CHECK: "migraphx.isinf"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xi1>
  %0 = "migraphx.isinf"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xi1>
  // CHECK: "migraphx.isinf"(%arg1) : (tensor<2x3xf64>) -> tensor<2x3xi1>
  %1 = "migraphx.isinf"(%arg1) : (tensor<2x3xf64>) -> tensor<2x3xi1>
  return %0, %1 : tensor<?x?xi1>, tensor<2x3xi1>
}

// CHECK-LABEL: @isnan
func.func @isnan(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xf8E4M3FN>) -> (tensor<2x3xi1>, tensor<?x3xi1>) {
  // CHECK: "migraphx.isnan"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xi1>
  %0 = "migraphx.isnan"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xi1>
  // CHECK: "migraphx.isnan"(%arg1) : (tensor<?x3xf8E4M3FN>) -> tensor<?x3xi1>
  %1 = "migraphx.isnan"(%arg1) : (tensor<?x3xf8E4M3FN>) -> tensor<?x3xi1>
  return %0, %1 : tensor<2x3xi1>, tensor<?x3xi1>
}

// CHECK-LABEL: @leaky_relu
func.func @leaky_relu(%arg0: tensor<?x3xf32>, %arg1: tensor<f16>) -> (tensor<?x3xf32>, tensor<f16>) {
  // CHECK: "migraphx.leaky_relu"(%arg0) {alpha = 1.000000e-02 : f64} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.leaky_relu"(%arg0) {alpha = 1.000000e-02 : f64} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.leaky_relu"(%arg1) {alpha = 1.000000e-02 : f64} : (tensor<f16>) -> tensor<f16>
  %1 = "migraphx.leaky_relu"(%arg1) {alpha = 1.000000e-02 : f64} : (tensor<f16>) -> tensor<f16>
  return %0, %1 : tensor<?x3xf32>, tensor<f16>
}

// CHECK-LABEL: @log
func.func @log(%arg0: tensor<f32>, %arg1: tensor<4xbf16>) -> (tensor<f32>, tensor<4xbf16>) {
  // CHECK: "migraphx.log"(%arg0) : (tensor<f32>) -> tensor<f32>
  %0 = "migraphx.log"(%arg0) : (tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.log"(%arg1) : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = "migraphx.log"(%arg1) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0, %1 : tensor<f32>, tensor<4xbf16>
}

// CHECK-LABEL: @log2
func.func @log2(%arg0: tensor<4xf32>, %arg1: tensor<?x?xf64>) -> (tensor<4xf32>, tensor<?x?xf64>) {
  // CHECK: "migraphx.log2"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.log2"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.log2"(%arg1) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "migraphx.log2"(%arg1) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %0, %1 : tensor<4xf32>, tensor<?x?xf64>
}

// CHECK-LABEL: @nearbyint
func.func @nearbyint(%arg0: tensor<?x?xf32>, %arg1: tensor<2x3xbf16>) -> (tensor<?x?xf32>, tensor<2x3xbf16>) {
  // CHECK: "migraphx.nearbyint"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.nearbyint"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.nearbyint"(%arg1) : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
  %1 = "migraphx.nearbyint"(%arg1) : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xbf16>
}

// CHECK-LABEL: @neg
func.func @neg(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xf64>) -> (tensor<2x3xf32>, tensor<?x3xf64>) {
  // CHECK: "migraphx.neg"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.neg"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.neg"(%arg1) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %1 = "migraphx.neg"(%arg1) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf64>
}

// CHECK-LABEL: @not
func.func @not(%arg0: tensor<?x3xi32>, %arg1: tensor<i1>) -> (tensor<?x3xi32>, tensor<i1>) {
  // CHECK: "migraphx.not"(%arg0) : (tensor<?x3xi32>) -> tensor<?x3xi32>
  %0 = "migraphx.not"(%arg0) : (tensor<?x3xi32>) -> tensor<?x3xi32>
  // CHECK: "migraphx.not"(%arg1) : (tensor<i1>) -> tensor<i1>
  %1 = "migraphx.not"(%arg1) : (tensor<i1>) -> tensor<i1>
  return %0, %1 : tensor<?x3xi32>, tensor<i1>
}

// CHECK-LABEL: @recip
func.func @recip(%arg0: tensor<f32>, %arg1: tensor<4xf64>) -> (tensor<f32>, tensor<4xf64>) {
  // CHECK: "migraphx.recip"(%arg0) : (tensor<f32>) -> tensor<f32>
  %0 = "migraphx.recip"(%arg0) : (tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.recip"(%arg1) : (tensor<4xf64>) -> tensor<4xf64>
  %1 = "migraphx.recip"(%arg1) : (tensor<4xf64>) -> tensor<4xf64>
  return %0, %1 : tensor<f32>, tensor<4xf64>
}

// CHECK-LABEL: @relu
func.func @relu(%arg0: tensor<4xf32>, %arg1: tensor<?x?xui8>) -> (tensor<4xf32>, tensor<?x?xui8>) {
  // CHECK: "migraphx.relu"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.relu"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.relu"(%arg1) : (tensor<?x?xui8>) -> tensor<?x?xui8>
  %1 = "migraphx.relu"(%arg1) : (tensor<?x?xui8>) -> tensor<?x?xui8>
  return %0, %1 : tensor<4xf32>, tensor<?x?xui8>
}

// CHECK-LABEL: @rsqrt
func.func @rsqrt(%arg0: tensor<?x?xf32>, %arg1: tensor<2x3xf16>) -> (tensor<?x?xf32>, tensor<2x3xf16>) {
  // CHECK: "migraphx.rsqrt"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.rsqrt"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.rsqrt"(%arg1) : (tensor<2x3xf16>) -> tensor<2x3xf16>
  %1 = "migraphx.rsqrt"(%arg1) : (tensor<2x3xf16>) -> tensor<2x3xf16>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xf16>
}

// CHECK-LABEL: @sigmoid
func.func @sigmoid(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xbf16>) -> (tensor<2x3xf32>, tensor<?x3xbf16>) {
  // CHECK: "migraphx.sigmoid"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.sigmoid"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.sigmoid"(%arg1) : (tensor<?x3xbf16>) -> tensor<?x3xbf16>
  %1 = "migraphx.sigmoid"(%arg1) : (tensor<?x3xbf16>) -> tensor<?x3xbf16>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xbf16>
}

// CHECK-LABEL: @sign
func.func @sign(%arg0: tensor<?x3xf32>, %arg1: tensor<f64>) -> (tensor<?x3xf32>, tensor<f64>) {
  // CHECK: "migraphx.sign"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.sign"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.sign"(%arg1) : (tensor<f64>) -> tensor<f64>
  %1 = "migraphx.sign"(%arg1) : (tensor<f64>) -> tensor<f64>
  return %0, %1 : tensor<?x3xf32>, tensor<f64>
}

// CHECK-LABEL: @sin
func.func @sin(%arg0: tensor<f32>, %arg1: tensor<4xf8E4M3FN>) -> (tensor<f32>, tensor<4xf8E4M3FN>) {
  // CHECK: "migraphx.sin"(%arg0) : (tensor<f32>) -> tensor<f32>
  %0 = "migraphx.sin"(%arg0) : (tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.sin"(%arg1) : (tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
  %1 = "migraphx.sin"(%arg1) : (tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
  return %0, %1 : tensor<f32>, tensor<4xf8E4M3FN>
}

// CHECK-LABEL: @sinh
func.func @sinh(%arg0: tensor<4xf32>, %arg1: tensor<?x?xf16>) -> (tensor<4xf32>, tensor<?x?xf16>) {
  // CHECK: "migraphx.sinh"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.sinh"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.sinh"(%arg1) : (tensor<?x?xf16>) -> tensor<?x?xf16>
  %1 = "migraphx.sinh"(%arg1) : (tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0, %1 : tensor<4xf32>, tensor<?x?xf16>
}

// CHECK-LABEL: @sqrt
func.func @sqrt(%arg0: tensor<?x?xf32>, %arg1: tensor<2x3xbf16>) -> (tensor<?x?xf32>, tensor<2x3xbf16>) {
  // CHECK: "migraphx.sqrt"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.sqrt"(%arg0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.sqrt"(%arg1) : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
  %1 = "migraphx.sqrt"(%arg1) : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xbf16>
}

// CHECK-LABEL: @tan
func.func @tan(%arg0: tensor<2x3xf32>, %arg1: tensor<?x3xf64>) -> (tensor<2x3xf32>, tensor<?x3xf64>) {
  // CHECK: "migraphx.tan"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.tan"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.tan"(%arg1) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %1 = "migraphx.tan"(%arg1) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf64>
}

// CHECK-LABEL: @tanh
func.func @tanh(%arg0: tensor<?x3xf32>, %arg1: tensor<f8E4M3FN>) -> (tensor<?x3xf32>, tensor<f8E4M3FN>) {
  // CHECK: "migraphx.tanh"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.tanh"(%arg0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.tanh"(%arg1) : (tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
  %1 = "migraphx.tanh"(%arg1) : (tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
  return %0, %1 : tensor<?x3xf32>, tensor<f8E4M3FN>
}
