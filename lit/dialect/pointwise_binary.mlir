// Pointwise operators of two operands: every op, static and dynamic dims, several types.
// RUN: mgx-opt %s | filecheck %s

// CHECK-LABEL: @add
func.func @add(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<4xi32>, %arg3: tensor<4xi32>) -> (tensor<f32>, tensor<4xi32>) {
  // CHECK: "migraphx.add"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = "migraphx.add"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.add"(%arg2, %arg3) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = "migraphx.add"(%arg2, %arg3) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0, %1 : tensor<f32>, tensor<4xi32>
}

// CHECK-LABEL: @bitwise_and
func.func @bitwise_and(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>, %arg2: tensor<?x?xi1>, %arg3: tensor<?x?xi1>) -> (tensor<4xi32>, tensor<?x?xi1>) {
  // CHECK: "migraphx.bitwise_and"(%arg0, %arg1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %0 = "migraphx.bitwise_and"(%arg0, %arg1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "migraphx.bitwise_and"(%arg2, %arg3) : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  %1 = "migraphx.bitwise_and"(%arg2, %arg3) : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
  return %0, %1 : tensor<4xi32>, tensor<?x?xi1>
}

// CHECK-LABEL: @div
func.func @div(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<2x3xi32>, %arg3: tensor<2x3xi32>) -> (tensor<?x?xf32>, tensor<2x3xi32>) {
  // CHECK: "migraphx.div"(%arg0, %arg1) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.div"(%arg0, %arg1) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.div"(%arg2, %arg3) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  %1 = "migraphx.div"(%arg2, %arg3) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xi32>
}

// CHECK-LABEL: @equal
func.func @equal(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<?x3xf16>, %arg3: tensor<?x3xf16>) -> (tensor<2x3xf32>, tensor<?x3xf16>) {
  // CHECK: "migraphx.equal"(%arg0, %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.equal"(%arg0, %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.equal"(%arg2, %arg3) : (tensor<?x3xf16>, tensor<?x3xf16>) -> tensor<?x3xf16>
  %1 = "migraphx.equal"(%arg2, %arg3) : (tensor<?x3xf16>, tensor<?x3xf16>) -> tensor<?x3xf16>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf16>
}

// CHECK-LABEL: @fmod
func.func @fmod(%arg0: tensor<?x3xf32>, %arg1: tensor<?x3xf32>, %arg2: tensor<f16>, %arg3: tensor<f16>) -> (tensor<?x3xf32>, tensor<f16>) {
  // CHECK: "migraphx.fmod"(%arg0, %arg1) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.fmod"(%arg0, %arg1) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.fmod"(%arg2, %arg3) : (tensor<f16>, tensor<f16>) -> tensor<f16>
  %1 = "migraphx.fmod"(%arg2, %arg3) : (tensor<f16>, tensor<f16>) -> tensor<f16>
  return %0, %1 : tensor<?x3xf32>, tensor<f16>
}

// CHECK-LABEL: @greater
func.func @greater(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<4xf64>, %arg3: tensor<4xf64>) -> (tensor<f32>, tensor<4xf64>) {
  // CHECK: "migraphx.greater"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = "migraphx.greater"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.greater"(%arg2, %arg3) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %1 = "migraphx.greater"(%arg2, %arg3) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0, %1 : tensor<f32>, tensor<4xf64>
}

// CHECK-LABEL: @less
func.func @less(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<?x?xf8E4M3FN>, %arg3: tensor<?x?xf8E4M3FN>) -> (tensor<4xf32>, tensor<?x?xf8E4M3FN>) {
  // CHECK: "migraphx.less"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.less"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.less"(%arg2, %arg3) : (tensor<?x?xf8E4M3FN>, tensor<?x?xf8E4M3FN>) -> tensor<?x?xf8E4M3FN>
  %1 = "migraphx.less"(%arg2, %arg3) : (tensor<?x?xf8E4M3FN>, tensor<?x?xf8E4M3FN>) -> tensor<?x?xf8E4M3FN>
  return %0, %1 : tensor<4xf32>, tensor<?x?xf8E4M3FN>
}

// CHECK-LABEL: @logical_and
func.func @logical_and(%arg0: tensor<?x?xi32>, %arg1: tensor<?x?xi32>, %arg2: tensor<2x3xi1>, %arg3: tensor<2x3xi1>) -> (tensor<?x?xi32>, tensor<2x3xi1>) {
  // CHECK: "migraphx.logical_and"(%arg0, %arg1) : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi32>
  %0 = "migraphx.logical_and"(%arg0, %arg1) : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi32>
  // CHECK: "migraphx.logical_and"(%arg2, %arg3) : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
  %1 = "migraphx.logical_and"(%arg2, %arg3) : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
  return %0, %1 : tensor<?x?xi32>, tensor<2x3xi1>
}

// CHECK-LABEL: @logical_or
func.func @logical_or(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>, %arg2: tensor<?x3xui8>, %arg3: tensor<?x3xui8>) -> (tensor<2x3xi32>, tensor<?x3xui8>) {
  // CHECK: "migraphx.logical_or"(%arg0, %arg1) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  %0 = "migraphx.logical_or"(%arg0, %arg1) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  // CHECK: "migraphx.logical_or"(%arg2, %arg3) : (tensor<?x3xui8>, tensor<?x3xui8>) -> tensor<?x3xui8>
  %1 = "migraphx.logical_or"(%arg2, %arg3) : (tensor<?x3xui8>, tensor<?x3xui8>) -> tensor<?x3xui8>
  return %0, %1 : tensor<2x3xi32>, tensor<?x3xui8>
}

// CHECK-LABEL: @logical_xor
func.func @logical_xor(%arg0: tensor<?x3xi32>, %arg1: tensor<?x3xi32>, %arg2: tensor<i1>, %arg3: tensor<i1>) -> (tensor<?x3xi32>, tensor<i1>) {
  // CHECK: "migraphx.logical_xor"(%arg0, %arg1) : (tensor<?x3xi32>, tensor<?x3xi32>) -> tensor<?x3xi32>
  %0 = "migraphx.logical_xor"(%arg0, %arg1) : (tensor<?x3xi32>, tensor<?x3xi32>) -> tensor<?x3xi32>
  // CHECK: "migraphx.logical_xor"(%arg2, %arg3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %1 = "migraphx.logical_xor"(%arg2, %arg3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  return %0, %1 : tensor<?x3xi32>, tensor<i1>
}

// CHECK-LABEL: @max
func.func @max(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<4xf16>, %arg3: tensor<4xf16>) -> (tensor<f32>, tensor<4xf16>) {
  // CHECK: "migraphx.max"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = "migraphx.max"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.max"(%arg2, %arg3) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %1 = "migraphx.max"(%arg2, %arg3) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  return %0, %1 : tensor<f32>, tensor<4xf16>
}

// CHECK-LABEL: @min
func.func @min(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<?x?xbf16>, %arg3: tensor<?x?xbf16>) -> (tensor<4xf32>, tensor<?x?xbf16>) {
  // CHECK: "migraphx.min"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.min"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.min"(%arg2, %arg3) : (tensor<?x?xbf16>, tensor<?x?xbf16>) -> tensor<?x?xbf16>
  %1 = "migraphx.min"(%arg2, %arg3) : (tensor<?x?xbf16>, tensor<?x?xbf16>) -> tensor<?x?xbf16>
  return %0, %1 : tensor<4xf32>, tensor<?x?xbf16>
}

// CHECK-LABEL: @mod
func.func @mod(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<2x3xf64>, %arg3: tensor<2x3xf64>) -> (tensor<?x?xf32>, tensor<2x3xf64>) {
  // CHECK: "migraphx.mod"(%arg0, %arg1) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.mod"(%arg0, %arg1) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.mod"(%arg2, %arg3) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %1 = "migraphx.mod"(%arg2, %arg3) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xf64>
}

// CHECK-LABEL: @mul
func.func @mul(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<?x3xf8E4M3FN>, %arg3: tensor<?x3xf8E4M3FN>) -> (tensor<2x3xf32>, tensor<?x3xf8E4M3FN>) {
  // CHECK: "migraphx.mul"(%arg0, %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.mul"(%arg0, %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "migraphx.mul"(%arg2, %arg3) : (tensor<?x3xf8E4M3FN>, tensor<?x3xf8E4M3FN>) -> tensor<?x3xf8E4M3FN>
  %1 = "migraphx.mul"(%arg2, %arg3) : (tensor<?x3xf8E4M3FN>, tensor<?x3xf8E4M3FN>) -> tensor<?x3xf8E4M3FN>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf8E4M3FN>
}

// CHECK-LABEL: @pow
func.func @pow(%arg0: tensor<?x3xf32>, %arg1: tensor<?x3xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> (tensor<?x3xf32>, tensor<i32>) {
  // CHECK: "migraphx.pow"(%arg0, %arg1) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %0 = "migraphx.pow"(%arg0, %arg1) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  // CHECK: "migraphx.pow"(%arg2, %arg3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %1 = "migraphx.pow"(%arg2, %arg3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %0, %1 : tensor<?x3xf32>, tensor<i32>
}

// CHECK-LABEL: @prelu
func.func @prelu(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<4xui8>, %arg3: tensor<4xui8>) -> (tensor<f32>, tensor<4xui8>) {
  // CHECK: "migraphx.prelu"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = "migraphx.prelu"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: "migraphx.prelu"(%arg2, %arg3) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %1 = "migraphx.prelu"(%arg2, %arg3) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %0, %1 : tensor<f32>, tensor<4xui8>
}

// CHECK-LABEL: @sqdiff
func.func @sqdiff(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<?x?xf16>, %arg3: tensor<?x?xf16>) -> (tensor<4xf32>, tensor<?x?xf16>) {
  // CHECK: "migraphx.sqdiff"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = "migraphx.sqdiff"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "migraphx.sqdiff"(%arg2, %arg3) : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  %1 = "migraphx.sqdiff"(%arg2, %arg3) : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0, %1 : tensor<4xf32>, tensor<?x?xf16>
}

// CHECK-LABEL: @sub
func.func @sub(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<2x3xf16>, %arg3: tensor<2x3xf16>) -> (tensor<?x?xf32>, tensor<2x3xf16>) {
  // CHECK: "migraphx.sub"(%arg0, %arg1) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = "migraphx.sub"(%arg0, %arg1) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "migraphx.sub"(%arg2, %arg3) : (tensor<2x3xf16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  %1 = "migraphx.sub"(%arg2, %arg3) : (tensor<2x3xf16>, tensor<2x3xf16>) -> tensor<2x3xf16>
  return %0, %1 : tensor<?x?xf32>, tensor<2x3xf16>
}

// A dynamic extent takes the static one's value; the stated result may be less precise.
// CHECK-LABEL: @dynamic_meets_static
func.func @dynamic_meets_static(%arg0: tensor<?x3xf32>, %arg1: tensor<2x?xf32>) -> (tensor<2x3xf32>, tensor<?x?xf32>) {
  // CHECK: (tensor<?x3xf32>, tensor<2x?xf32>) -> tensor<2x3xf32>
  %0 = "migraphx.add"(%arg0, %arg1) : (tensor<?x3xf32>, tensor<2x?xf32>) -> tensor<2x3xf32>
  // CHECK: (tensor<?x3xf32>, tensor<2x?xf32>) -> tensor<?x?xf32>
  %1 = "migraphx.mul"(%arg0, %arg1) : (tensor<?x3xf32>, tensor<2x?xf32>) -> tensor<?x?xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<?x?xf32>
}
