// RUN: mgx-opt %s --mgx-select-rows --mgx-eliminate-common-subexpression --mgx-dead-code-elimination --split-input-file | filecheck %s

// A gate, a matmul and a residual sum, whose rows are selected by constants.
// CHECK-LABEL: @layer
// CHECK: %[[X:.*]] = "migraphx.gather"(%arg0, %[[I:.*]]) {axis = 1
// CHECK: %[[A:.*]] = "migraphx.sigmoid"(%[[X]]) : (tensor<2x2x8xf32>)
// CHECK: %[[M:.*]] = "migraphx.mul"(%[[X]], %[[A]])
// CHECK: %[[D:.*]] = "migraphx.dot"(%[[M]], %arg2)
// CHECK: %[[R:.*]] = "migraphx.gather"(%arg1, %[[I]]) {axis = 1
// CHECK: %[[S:.*]] = "migraphx.add"(%[[D]], %[[R]]) : (tensor<2x2x4xf32>
// CHECK: return %[[S]]
func.func @layer(%x: tensor<2x5x8xf32>, %r: tensor<2x5x4xf32>, %w: tensor<2x8x4xf32>) -> tensor<2x2x4xf32> {
  %a = "migraphx.sigmoid"(%x) : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %m = "migraphx.mul"(%x, %a) : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %d = "migraphx.dot"(%m, %w) : (tensor<2x5x8xf32>, tensor<2x8x4xf32>) -> tensor<2x5x4xf32>
  %s = "migraphx.add"(%d, %r) : (tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %i = "migraphx.literal"() {value = dense<[4, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %y = "migraphx.gather"(%s, %i) {axis = 1 : i64} : (tensor<2x5x4xf32>, tensor<2xi64>) -> tensor<2x2x4xf32>
  return %y : tensor<2x2x4xf32>
}

// -----

// A softmax of scores, views of heads, and a sum over the elements of a row; the scale of a row is
// broadcast to it, and a bias to all rows.
// CHECK-LABEL: @heads
// CHECK: %[[X:.*]] = "migraphx.gather"(%arg0, %{{.*}}) {axis = 1 : i64} : (tensor<2x5x8xf32>, tensor<1xi64>)
// CHECK: "migraphx.reshape"(%[[X]]) {dims = array<i64: 2, 1, 2, 4>}
// CHECK: %[[T:.*]] = "migraphx.transpose"
// CHECK: %[[P:.*]] = "migraphx.softmax"(%[[T]]) {{.*}}tensor<2x2x1x4xf32>
// CHECK: "migraphx.reduce_sum"(%[[P]]) {{.*}}tensor<2x2x1x1xf32>
// CHECK: "migraphx.multibroadcast"(%{{.*}}) {{.*}}out_lens = array<i64: 2, 2, 1, 4>
// CHECK: "migraphx.multibroadcast"(%arg1) {{.*}}out_lens = array<i64: 2, 2, 1, 4>
// CHECK-NOT: migraphx.gather
func.func @heads(%x: tensor<2x5x8xf32>, %b: tensor<4xf32>) -> tensor<2x2x1x4xf32> {
  %h = "migraphx.reshape"(%x) {dims = array<i64: 2, 5, 2, 4>} : (tensor<2x5x8xf32>) -> tensor<2x5x2x4xf32>
  %t = "migraphx.transpose"(%h) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x2x4xf32>) -> tensor<2x2x5x4xf32>
  %p = "migraphx.softmax"(%t) {axis = 3 : i64} : (tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  %s = "migraphx.reduce_sum"(%p) {axes = array<i64: 3>} : (tensor<2x2x5x4xf32>) -> tensor<2x2x5x1xf32>
  %w = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 2, 2, 5, 4>} : (tensor<2x2x5x1xf32>) -> tensor<2x2x5x4xf32>
  %c = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 2, 5, 4>} : (tensor<4xf32>) -> tensor<2x2x5x4xf32>
  %m = "migraphx.mul"(%w, %c) : (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x2x5x4xf32>
  %i = "migraphx.literal"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %y = "migraphx.gather"(%m, %i) {axis = 2 : i64} : (tensor<2x2x5x4xf32>, tensor<1xi64>) -> tensor<2x2x1x4xf32>
  return %y : tensor<2x2x1x4xf32>
}

// -----

// Indices of a caller, of which each is given once.
// CHECK-LABEL: @of_a_caller
// CHECK-NEXT: %[[X:.*]] = "migraphx.gather"(%arg0, %arg1)
// CHECK-NEXT: "migraphx.abs"(%[[X]])
func.func @of_a_caller(%x: tensor<5x8xf32>, %i: tensor<2xi64> {migraphx.distinct}) -> tensor<2x8xf32> {
  %a = "migraphx.abs"(%x) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = "migraphx.gather"(%a, %i) {axis = 0 : i64} : (tensor<5x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// Near misses. Indices that may repeat rows, as edges of a graph do.
// CHECK-LABEL: @edges
// CHECK-NEXT: %[[A:.*]] = "migraphx.abs"(%arg0)
// CHECK-NEXT: "migraphx.gather"(%[[A]]
func.func @edges(%x: tensor<5x8xf32>, %i: tensor<2xi64>) -> tensor<2x8xf32> {
  %a = "migraphx.abs"(%x) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = "migraphx.gather"(%a, %i) {axis = 0 : i64} : (tensor<5x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// -1 and 4 are one row.
// CHECK-LABEL: @twice
// CHECK: "migraphx.abs"(%arg0)
func.func @twice(%x: tensor<5x8xf32>) -> tensor<2x8xf32> {
  %a = "migraphx.abs"(%x) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %i = "migraphx.literal"() {value = dense<[-1, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %y = "migraphx.gather"(%a, %i) {axis = 0 : i64} : (tensor<5x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// All rows are wanted elsewhere.
// CHECK-LABEL: @read_elsewhere
// CHECK: "migraphx.abs"(%arg0)
func.func @read_elsewhere(%x: tensor<5x8xf32>) -> (tensor<1x8xf32>, tensor<5x8xf32>) {
  %a = "migraphx.abs"(%x) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %i = "migraphx.literal"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %y = "migraphx.gather"(%a, %i) {axis = 0 : i64} : (tensor<5x8xf32>, tensor<1xi64>) -> tensor<1x8xf32>
  return %y, %a : tensor<1x8xf32>, tensor<5x8xf32>
}

// -----

// A softmax and a reshape that mix the rows.
// CHECK-LABEL: @along
// CHECK: "migraphx.softmax"(%arg0)
// CHECK: "migraphx.reshape"(%arg0)
func.func @along(%x: tensor<5x8xf32>) -> (tensor<1x8xf32>, tensor<1x4xf32>) {
  %a = "migraphx.softmax"(%x) {axis = 0 : i64} : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %i = "migraphx.literal"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %y = "migraphx.gather"(%a, %i) {axis = 0 : i64} : (tensor<5x8xf32>, tensor<1xi64>) -> tensor<1x8xf32>
  %b = "migraphx.reshape"(%x) {dims = array<i64: 10, 4>} : (tensor<5x8xf32>) -> tensor<10x4xf32>
  %z = "migraphx.gather"(%b, %i) {axis = 0 : i64} : (tensor<10x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  return %y, %z : tensor<1x8xf32>, tensor<1x4xf32>
}
