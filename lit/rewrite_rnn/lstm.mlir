// RUN: mgx-opt %s --mgx-rewrite-rnn --split-input-file | filecheck %s

// Cells that nobody reads are carried, not kept.
// CHECK-LABEL: @states
// CHECK-NOT: migraphx.lstm
// CHECK: "migraphx.dot"({{.*}}) : (tensor<10x3xf32>, tensor<3x16xf32>) -> tensor<10x16xf32>
// CHECK: %{{.*}}:3 = "migraphx.loop"
// CHECK: "migraphx.dot"({{.*}}) : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>
// CHECK-NOT: migraphx.dot
// CHECK: -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<5x2x4xf32>)
func.func @states(%x: tensor<5x2x3xf32>, %w: tensor<1x16x3xf32>, %r: tensor<1x16x4xf32>) -> tensor<5x1x2x4xf32> {
  %h, %c = "migraphx.lstm"(%x, %w, %r) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return %h : tensor<5x1x2x4xf32>
}

// -----

// Everything at once: first states, peepholes, lengths; f = 1 - i.
// CHECK-LABEL: @full
// CHECK-NOT: migraphx.lstm
// CHECK: %{{.*}}:4 = "migraphx.loop"
// CHECK: migraphx.sub
// CHECK: "migraphx.yield"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (tensor<i1>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
func.func @full(%x: tensor<5x2x3xf32>, %w: tensor<1x16x3xf32>, %r: tensor<1x16x4xf32>, %b: tensor<1x32xf32>, %lens: tensor<2xi32>, %h0: tensor<1x2x4xf32>, %c0: tensor<1x2x4xf32>, %p: tensor<1x12xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>) {
  %h, %c = "migraphx.lstm"(%x, %w, %r, %b, %lens, %h0, %c0, %p) {hidden_size = 4 : i64, input_forget = 1 : i64} : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>, tensor<1x32xf32>, tensor<2xi32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x12xf32>) -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
  return %h, %c : tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>
}

// -----

// Near miss: the result states fewer dims than the operands.
// CHECK-LABEL: @stated
// CHECK-NEXT: migraphx.lstm
func.func @stated(%x: tensor<5x2x3xf32>, %w: tensor<1x16x3xf32>, %r: tensor<1x16x4xf32>) -> tensor<?x1x2x4xf32> {
  %h, %c = "migraphx.lstm"(%x, %w, %r) {hidden_size = 4 : i64} : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (tensor<?x1x2x4xf32>, tensor<?x1x2x4xf32>)
  return %h : tensor<?x1x2x4xf32>
}
