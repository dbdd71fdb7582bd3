// RUN: not mgx-opt --mgx-lower-to-linalg %s 2>&1 | filecheck %s

// Every op that cannot be compiled is named at once, each with its reason and its place.
// CHECK: error: {{.*}}2 operations cannot be compiled for cpu
// CHECK: 'migraphx.random_seed' op cannot be compiled: a seed that differs at every run
// CHECK: 'migraphx.random_uniform' op cannot be compiled: its numbers are those of the Mersenne Twister
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %s = "migraphx.random_seed"() {dtype = ui64} : () -> tensor<ui64>
  %0 = "migraphx.random_uniform"(%s, %x) : (tensor<ui64>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
