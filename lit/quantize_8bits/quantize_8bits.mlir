// RUN: mgx-opt %s --mgx-quantize-8bits=scales=2,4 --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-quantize-8bits='scales=2,4 shifts=0,3' --split-input-file | filecheck %s --check-prefix=SHIFT
// RUN: mgx-opt %s --mgx-quantize-8bits=precision=fp8e4m3fn --split-input-file | filecheck %s --check-prefix=F8

// (Whole numbers, which these scales keep.)
// CHECK-LABEL: @captured
// CHECK: dense<2.500000e-01> : tensor<f32>
// CHECK: dense<0> : tensor<i8>
// CHECK: %[[Q:.*]] = "migraphx.quantizelinear"{{.*}}out_type = i8
// CHECK: "migraphx.dequantizelinear"(%[[Q]]
// CHECK: dense<1.562500e-02> : tensor<f32>
// CHECK-NOT: migraphx.capture
// SHIFT-LABEL: @captured
// SHIFT: dense<3> : tensor<i8>
// F8-LABEL: @captured
// F8: %[[Q:.*]] = "migraphx.quantizelinear"{{.*}} -> tensor<4xf8E4M3FN>
// F8: "migraphx.dequantizelinear"(%[[Q]], {{.*}}) : (tensor<4xf8E4M3FN>, tensor<4xf32>)
func.func @captured(%x: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = "migraphx.convert"(%x) {target_type = f32} : (tensor<4xi32>) -> tensor<4xf32>
  %0 = "migraphx.capture"(%f) {ins_index = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %z = "migraphx.literal"() {value = dense<0.25> : tensor<4xf32>} : () -> tensor<4xf32>
  %1 = "migraphx.capture"(%z) {ins_index = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// 16-bit values are quantised in f32; integers only lose their capture.
// CHECK-LABEL: @types
// CHECK: "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: migraphx.quantizelinear
// CHECK: "migraphx.convert"({{.*}}) {target_type = f16}
// CHECK-NOT: migraphx.quantizelinear
// CHECK: return {{.*}}, %arg1
func.func @types(%x: tensor<4xf16>, %y: tensor<4xi32>) -> (tensor<4xf16>, tensor<4xi32>) {
  %c = "migraphx.literal"() {value = dense<0.0> : tensor<4xf16>} : () -> tensor<4xf16>
  %z = "migraphx.mul"(%x, %c) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %0 = "migraphx.capture"(%x) {ins_index = 0 : i64} : (tensor<4xf16>) -> tensor<4xf16>
  %1 = "migraphx.capture"(%y) {ins_index = 1 : i64} : (tensor<4xi32>) -> tensor<4xi32>
  %2 = "migraphx.mul"(%0, %c) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  return %2, %1 : tensor<4xf16>, tensor<4xi32>
}
