// RUN: mgx-opt %s --mgx-lower-to-linalg='target=gpu arch=gfx942' --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-lower-to-linalg --split-input-file | filecheck %s --check-prefix=CPU

// tanh by exp: the compiler's is a call, which may not be given what is undefined.
// CHECK-LABEL: @main(
// CHECK-NOT: math.tanh
// CHECK: math.exp
// CHECK: math.copysign
// CPU-LABEL: @main(
// CPU: math.tanh
func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %0 = "migraphx.tanh"(%x) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

// Each lane adds what is ahead of its element.
// CHECK-LABEL: @main(
// CHECK-NOT: iree_linalg_ext.scan
// CHECK: scf.for
// CHECK: arith.addf
// CPU-LABEL: @main(
// CPU-NOT: compilation_info
func.func @main(%x: tensor<2x5x3xf32>) -> tensor<2x5x3xf32> {
  %0 = "migraphx.prefix_scan_sum"(%x) {axis = 1 : i64} : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  return %0 : tensor<2x5x3xf32>
}

// -----

// All lanes count the elements ahead of each. Integers are their own keys.
// CHECK-LABEL: @main(%arg0: tensor<4x9xi32>)
// CHECK: linalg.generic{{.*}}"parallel", "parallel", "reduction"]} ins(%arg0, %arg0
// CHECK: arith.cmpi sgt
// CHECK: linalg.generic{{.*}}"parallel", "parallel", "reduction"]}{{.*}}outs(%{{.*}} : tensor<4x3xi32>)
// CHECK-NOT: iree_linalg_ext.topk
// CPU-LABEL: @main(
// CPU-NOT: ins(%arg0, %arg0
func.func @main(%x: tensor<4x9xi32>) -> (tensor<4x3xi32>, tensor<4x3xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 3 : i64, axis = 1 : i64, largest = true} : (tensor<4x9xi32>) -> (tensor<4x3xi32>, tensor<4x3xi64>)
  return %0#0, %0#1 : tensor<4x3xi32>, tensor<4x3xi64>
}

// -----

// Keys of floats, and of integers in the other order, are made.
// CHECK-LABEL: @main(%arg0: tensor<4x9xi32>)
// CHECK: arith.xori
// CHECK-NOT: ins(%arg0, %arg0
// CHECK: "reduction"
// CPU-LABEL: @main(
func.func @main(%x: tensor<4x9xi32>) -> (tensor<4x3xi32>, tensor<4x3xi64>) {
  %0:2 = "migraphx.topk"(%x) {k = 3 : i64, axis = 1 : i64, largest = false} : (tensor<4x9xi32>) -> (tensor<4x3xi32>, tensor<4x3xi64>)
  return %0#0, %0#1 : tensor<4x3xi32>, tensor<4x3xi64>
}

// -----

// Axes at run time: each element has a loop over what it reduces, on CPUs too.
// CHECK-LABEL: @main(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: "reduction"
// CPU-LABEL: @main(
// CPU-COUNT-2: scf.for
// CPU-NOT: "reduction"
func.func @main(%x: tensor<3x4xf32>, %a: tensor<1xi64>) -> tensor<?x?xf32> {
  %0 = "migraphx.reduce_sum"(%x, %a) {axes = array<i64>} : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Extremes by integers in the order of floats: the compiler's maximum of a reduction passes over NaN.
// CHECK-LABEL: @main(
// CHECK: linalg.fill ins(%{{.*}} : i32)
// CHECK: arith.cmpf une
// CHECK: arith.maxui
// CHECK: arith.bitcast %{{.*}} : i32 to f32
// CPU-LABEL: @main(
// CPU: arith.maximumf
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x1xf32> {
  %0 = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}

// -----

// A softmax keeps its maximum: NaN comes back by the sum.
// CHECK-LABEL: @main(
// CHECK: arith.maximumf
// CHECK-NOT: arith.maxui
// CPU-LABEL: @main(
// CPU: arith.maximumf
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = "migraphx.softmax"(%x) {axis = 1 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// Lanes share a row that waves do not divide: the last sum has the threads, others its parts.
// CHECK-LABEL: @main(%arg0: tensor<3x1000xf32>)
// CHECK: flow.dispatch.region
// CHECK: compilation_info{{.*}}partial_reduction = [0, 1024]{{.*}}workgroup_size = [256, 1, 1]
// CPU-LABEL: @main(
// CPU-NOT: compilation_info
func.func @main(%x: tensor<3x1000xf32>) -> tensor<3x1xf32> {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<3x1000xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}

// -----

// IREE has threads for a row of whole waves.
// CHECK-LABEL: @main(%arg0: tensor<3x1024xf32>)
// CHECK-NOT: compilation_info
func.func @main(%x: tensor<3x1024xf32>) -> tensor<3x1xf32> {
  %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<3x1024xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}
