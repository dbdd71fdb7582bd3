// RUN: mgx-opt %s --mgx-rewrite-pooling=rewrite-lrn --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-rewrite-pooling --split-input-file | filecheck %s --check-prefix=OFF

// CHECK-LABEL: @image
// CHECK: %[[S:.*]] = "migraphx.mul"(%arg0, %arg0)
// CHECK: %[[T:.*]] = "migraphx.transpose"(%[[S]]) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK: %[[P:.*]] = "migraphx.pooling"(%[[T]]) {{.*}}count_include_pad = true{{.*}}lengths = array<i64: 1, 4>{{.*}}padding = array<i64: 0, 1, 0, 2>
// CHECK: %[[M:.*]] = "migraphx.transpose"(%[[P]]) {permutation = array<i64: 0, 3, 1, 2>}
// CHECK: %[[D:.*]] = "migraphx.pow"
// CHECK: "migraphx.div"(%arg0, %[[D]])
// OFF-LABEL: @image
// OFF-NEXT: migraphx.lrn
func.func @image(%x: tensor<1x6x2x3xf32>) -> tensor<1x6x2x3xf32> {
  %0 = "migraphx.lrn"(%x) {size = 4 : i64, alpha = 0.5 : f64, beta = 0.75 : f64, bias = 2.0 : f64} : (tensor<1x6x2x3xf32>) -> tensor<1x6x2x3xf32>
  return %0 : tensor<1x6x2x3xf32>
}

// -----

// Nothing but channels, 16 bits: the squares are in f32.
// CHECK-LABEL: @flat
// CHECK: %[[X:.*]] = "migraphx.convert"(%arg0) {target_type = f32}
// CHECK: %[[S:.*]] = "migraphx.mul"(%[[X]], %[[X]])
// CHECK: "migraphx.unsqueeze"(%[[S]]) {axes = array<i64: 1>
// CHECK: migraphx.pooling
// CHECK: "migraphx.convert"{{.*}} {target_type = f16}
func.func @flat(%x: tensor<3x6xf16>) -> tensor<3x6xf16> {
  %0 = "migraphx.lrn"(%x) {size = 3 : i64} : (tensor<3x6xf16>) -> tensor<3x6xf16>
  return %0 : tensor<3x6xf16>
}

// -----

// Run-time extents.
// CHECK-LABEL: @dynamic
// CHECK-NEXT: migraphx.lrn
func.func @dynamic(%x: tensor<1x6x?x3xf32>) -> tensor<1x6x?x3xf32> {
  %0 = "migraphx.lrn"(%x) {size = 3 : i64} : (tensor<1x6x?x3xf32>) -> tensor<1x6x?x3xf32>
  return %0 : tensor<1x6x?x3xf32>
}
