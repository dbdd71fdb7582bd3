// The rule `panel_rows` takes its kernel: a matmul reads the table, too.
// RUN: mgx-opt %s --mgx-propagate-constant --mgx-fuse-pointwise-reduce --mgx-lower-to-linalg=arch=x86-64-v4 --explain-kernels 2>&1 | filecheck %s

// CHECK: cpu::gather: panel_rows (
func.func @rows(%i: tensor<7xi64>, %x: tensor<3x64xf32>) -> (tensor<7x64xf32>, tensor<3x256xf32>) {
  %s = "migraphx.literal"() {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>} : () -> tensor<8xf32>
  %r = "migraphx.reshape"(%s) {dims = array<i64: 8, 1, 1>} : (tensor<8xf32>) -> tensor<8x1x1xf32>
  %b = "migraphx.multibroadcast"(%r) {out_lens = array<i64: 8, 32, 64>} : (tensor<8x1x1xf32>) -> tensor<8x32x64xf32>
  %e = "migraphx.exp"(%b) : (tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  %t = "migraphx.reshape"(%e) {dims = array<i64: 256, 64>} : (tensor<8x32x64xf32>) -> tensor<256x64xf32>
  %w = "migraphx.transpose"(%t) {permutation = array<i64: 1, 0>} : (tensor<256x64xf32>) -> tensor<64x256xf32>
  %0 = "migraphx.gather"(%t, %i) {axis = 0 : i64} : (tensor<256x64xf32>, tensor<7xi64>) -> tensor<7x64xf32>
  %1 = "migraphx.dot"(%x, %w) : (tensor<3x64xf32>, tensor<64x256xf32>) -> tensor<3x256xf32>
  return %0, %1 : tensor<7x64xf32>, tensor<3x256xf32>
}
