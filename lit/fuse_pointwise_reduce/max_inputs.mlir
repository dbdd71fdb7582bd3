// RUN: mgx-opt %s --split-input-file --mgx-fuse-pointwise-reduce=max-inputs=2 | filecheck %s

// The third operand would be one too many.
// CHECK: %[[A:.*]] = "migraphx.pointwise"(%arg0, %arg1) ({
// CHECK: "migraphx.pointwise"(%[[A]], %arg2) ({
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.add"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %z) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// A kernel of 40 results would be launched with more buffers than a device binds.
// CHECK-LABEL: @results
// CHECK-COUNT-2: "migraphx.pointwise"(
// CHECK-NOT: "migraphx.pointwise"(
func.func @results(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %0 = "migraphx.add"(%a, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.add"(%1, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = "migraphx.add"(%2, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %4 = "migraphx.add"(%3, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = "migraphx.add"(%4, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %6 = "migraphx.add"(%5, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %7 = "migraphx.add"(%6, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %8 = "migraphx.add"(%7, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %9 = "migraphx.add"(%8, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %10 = "migraphx.add"(%9, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %11 = "migraphx.add"(%10, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %12 = "migraphx.add"(%11, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %13 = "migraphx.add"(%12, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %14 = "migraphx.add"(%13, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %15 = "migraphx.add"(%14, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %16 = "migraphx.add"(%15, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %17 = "migraphx.add"(%16, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %18 = "migraphx.add"(%17, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %19 = "migraphx.add"(%18, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %20 = "migraphx.add"(%19, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %21 = "migraphx.add"(%20, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %22 = "migraphx.add"(%21, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %23 = "migraphx.add"(%22, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %24 = "migraphx.add"(%23, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %25 = "migraphx.add"(%24, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %26 = "migraphx.add"(%25, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %27 = "migraphx.add"(%26, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %28 = "migraphx.add"(%27, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %29 = "migraphx.add"(%28, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %30 = "migraphx.add"(%29, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %31 = "migraphx.add"(%30, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %32 = "migraphx.add"(%31, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %33 = "migraphx.add"(%32, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %34 = "migraphx.add"(%33, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %35 = "migraphx.add"(%34, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %36 = "migraphx.add"(%35, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %37 = "migraphx.add"(%36, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %38 = "migraphx.add"(%37, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %39 = "migraphx.add"(%38, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
