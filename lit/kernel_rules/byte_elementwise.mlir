// The rule `byte_elementwise` takes its kernel.
// RUN: mgx-opt %s --mgx-fuse-pointwise --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::relu_convert: byte_elementwise (
func.func @quantized(%x: tensor<4x64xf32>) -> tensor<4x64xi8> {
  %0 = "migraphx.relu"(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = "migraphx.convert"(%0) {target_type = i8} : (tensor<4x64xf32>) -> tensor<4x64xi8>
  return %1 : tensor<4x64xi8>
}
