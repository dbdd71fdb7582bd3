// All steps of a recurrent network as one kernel.
// RUN: mgx-opt %s --mgx-lower-to-linalg=arch=x86-64-v4 --split-input-file | filecheck %s

// Four rows by one register of each gate: 16 sums. The states stay in scratch, this step's behind
// the next one's.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: tensor.empty() : tensor<8x64xf32>
// CHECK: tensor.empty() : tensor<4x64xf32>
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (tensor<20x1x4x64xf32>, tensor<8x64xf32>, tensor<4x64xf32>)
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-16: math.fma {{.*}} : vector<16xf32>
// CHECK: scf.yield
// CHECK: arith.divf {{.*}} : vector<16xf32>
// CHECK-NOT: linalg
// CHECK-NOT: flow.executable
// CHECK: return
func.func @lstm(%x: tensor<20x8x256xf32>, %r: tensor<1x256x64xf32>) -> tensor<20x1x8x64xf32> {
  %w = "migraphx.literal"() {value = dense<0.1> : tensor<1x256x64xf32>} : () -> tensor<1x256x64xf32>
  %0:2 = "migraphx.lstm_steps"(%x, %w) {hidden_size = 64 : i64} : (tensor<20x8x256xf32>, tensor<1x256x64xf32>) -> (tensor<20x1x8x64xf32>, tensor<20x1x8x64xf32>)
  return %0#0 : tensor<20x1x8x64xf32>
}

// -----

// Only the last register of the hidden units is masked; an early reset sums its candidate apart.
// CHECK-LABEL: @main(
// CHECK: "flow.executable"
// CHECK: vector.transfer_read {{.*}} {in_bounds = [true]} : tensor<?x1x51xf32>, vector<16xf32>
// CHECK: vector.transfer_read {{.*}}, %{{[a-z0-9_]*}} : tensor<?x1x51xf32>, vector<16xf32>
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>)
func.func @gru(%x: tensor<?x1x51xf32>) -> tensor<?x1x1x17xf32> {
  %w = "migraphx.literal"() {value = dense<0.1> : tensor<1x51x17xf32>} : () -> tensor<1x51x17xf32>
  %0 = "migraphx.gru_steps"(%x, %w) {hidden_size = 17 : i64} : (tensor<?x1x51xf32>, tensor<1x51x17xf32>) -> tensor<?x1x1x17xf32>
  return %0 : tensor<?x1x1x17xf32>
}
