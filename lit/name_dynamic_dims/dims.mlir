// RUN: mgx-opt %s --mgx-name-dynamic-dims --mgx-dead-code-elimination --mgx-rewrite-dot --mgx-forget-dynamic-dims --mgx-dead-code-elimination --split-input-file | filecheck %s
// Dynamic dims count as known between the two passes: patterns of fixed dims apply, and `?` is back after.

// A weight that is repeated over two dynamic dims: one dot of rows, which reads it as it is.
// CHECK-LABEL: @rows_of_two_dynamic_dims
// CHECK: %[[X:.*]] = "migraphx.reshape"(%arg0) {dims = array<i64: -1, 8>} : (tensor<?x?x8xf32>) -> tensor<?x8xf32>
// CHECK: %[[D:.*]] = "migraphx.dot"(%[[X]], %arg1) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
// CHECK: "migraphx.reshape"(%[[D]], %{{.*}}) {allowzero = true, dims = array<i64>} : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
func.func @rows_of_two_dynamic_dims(%x: tensor<?x?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?x?x4xf32> {
  %0 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x?x8xf32>) -> tensor<1xi64>
  %1 = "migraphx.literal"() {value = dense<[8, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %3 = "migraphx.broadcast_with_dims"(%w, %2) : (tensor<8x4xf32>, tensor<3xi64>) -> tensor<?x8x4xf32>
  %4 = "migraphx.dot"(%x, %3) : (tensor<?x?x8xf32>, tensor<?x8x4xf32>) -> tensor<?x?x4xf32>
  return %4 : tensor<?x?x4xf32>
}

// -----

// Near miss: the second operand has a batch of its own, which may be another one.
// CHECK-LABEL: @two_batches
// CHECK: "migraphx.dot"(%arg0, %arg1) : (tensor<?x?x8xf32>, tensor<?x8x4xf32>) -> tensor<?x?x4xf32>
func.func @two_batches(%x: tensor<?x?x8xf32>, %w: tensor<?x8x4xf32>) -> tensor<?x?x4xf32> {
  %0 = "migraphx.dot"(%x, %w) : (tensor<?x?x8xf32>, tensor<?x8x4xf32>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// A table that is cut to the length: beside x of that length it is not cut short.
// CHECK-LABEL: @table_of_positions
// CHECK: %[[T:.*]] = "migraphx.slice"
// CHECK: %[[B:.*]] = "migraphx.multibroadcast"(%[[T]], %arg0)
// CHECK: "migraphx.add"(%arg0, %[[B]]) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
func.func @table_of_positions(%x: tensor<?x?xf32>, %t: tensor<16xf32>) -> tensor<?x?xf32> {
  %0 = "migraphx.literal"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = "migraphx.dimensions_of"(%x) {start = 1 : i64, end = 2 : i64} : (tensor<?x?xf32>) -> tensor<1xi64>
  %2 = "migraphx.slice"(%t, %0, %1) {axes = array<i64: 0>, starts = array<i64>, ends = array<i64>} : (tensor<16xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  %3 = "migraphx.dimensions_of"(%x) : (tensor<?x?xf32>) -> tensor<2xi64>
  %4 = "migraphx.broadcast_with_dims"(%2, %3) : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %5 = "migraphx.add"(%x, %4) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %5 : tensor<?x?xf32>
}

// -----

// Near miss: an extent that no input's size tells stays as it is.
// CHECK-LABEL: @as_many_as_are_not_zero
// CHECK: "migraphx.broadcast_with_dims"
func.func @as_many_as_are_not_zero(%n: tensor<1xi64>, %x: tensor<1x4xf32>) -> tensor<?x4xf32> {
  %0 = "migraphx.literal"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = "migraphx.concat"(%n, %0) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %2 = "migraphx.broadcast_with_dims"(%x, %1) : (tensor<1x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// Of a cache that gets rows, how many it has then is a size like those of inputs.
// CHECK-LABEL: @rows_of_a_cache
// CHECK: %[[C:.*]] = "migraphx.concat_past_present"
// CHECK: "migraphx.multibroadcast"(%arg4, %{{.*}}) {{.*}} -> tensor<1x2x?x4xf32>
// CHECK-NOT: "migraphx.broadcast_with_dims"
func.func @rows_of_a_cache(%k: tensor<1x2x1x4xf32>, %n: tensor<1xi32>, %past: tensor<1x2x?x4xf32>, %rows: tensor<i64>, %bias: tensor<4xf32>) -> tensor<1x2x?x4xf32> {
  %0 = "migraphx.concat_past_present"(%k, %n, %past, %rows) {kv_num_heads = 2 : i64} : (tensor<1x2x1x4xf32>, tensor<1xi32>, tensor<1x2x?x4xf32>, tensor<i64>) -> tensor<1x2x?x4xf32>
  %1 = "migraphx.dimensions_of"(%0) : (tensor<1x2x?x4xf32>) -> tensor<4xi64>
  %2 = "migraphx.broadcast_with_dims"(%bias, %1) : (tensor<4xf32>, tensor<4xi64>) -> tensor<1x2x?x4xf32>
  %3 = "migraphx.add"(%0, %2) : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %3 : tensor<1x2x?x4xf32>
}

// -----

// How often a loop goes round, and what it stacks, are such sizes too.
// CHECK-LABEL: @what_a_loop_stacks
// CHECK: "migraphx.multibroadcast"(%arg3, %{{.*}}) {{.*}} -> tensor<?x?x4xf32>
// CHECK-NOT: "migraphx.broadcast_with_dims"
func.func @what_a_loop_stacks(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<?x4xf32>, %bias: tensor<4xf32>) -> tensor<?x?x4xf32> {
  %0 = "migraphx.loop"(%n, %t) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>):
    "migraphx.yield"(%c, %x) : (tensor<i1>, tensor<?x4xf32>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64>} : (tensor<i64>, tensor<i1>) -> tensor<?x?x4xf32>
  %1 = "migraphx.dimensions_of"(%0) : (tensor<?x?x4xf32>) -> tensor<3xi64>
  %2 = "migraphx.broadcast_with_dims"(%bias, %1) : (tensor<4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  %3 = "migraphx.add"(%0, %2) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  return %3 : tensor<?x?x4xf32>
}

// -----

// What a product multiplies has one length: a mask of a length of its own is of that, or repeated.
// CHECK-LABEL: @mask_of_its_own
// CHECK: %[[M:.*]] = "migraphx.multibroadcast"(%arg1, %arg0)
// CHECK: "migraphx.add"(%arg0, %[[M]])
// CHECK: "migraphx.dot"
func.func @mask_of_its_own(%x: tensor<3x?xf32>, %m: tensor<?xf32>) -> tensor<3x3xf32> {
  %0 = "migraphx.multibroadcast"(%x, %m) {out_lens = array<i64>, out_dyn_dims = array<i64>} : (tensor<3x?xf32>, tensor<?xf32>) -> tensor<3x?xf32>
  %1 = "migraphx.multibroadcast"(%m, %x) {out_lens = array<i64>, out_dyn_dims = array<i64>} : (tensor<?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
  %2 = "migraphx.add"(%0, %1) : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
  %3 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<3x?xf32>) -> tensor<?x3xf32>
  %4 = "migraphx.dot"(%2, %3) : (tensor<3x?xf32>, tensor<?x3xf32>) -> tensor<3x3xf32>
  return %4 : tensor<3x3xf32>
}

// -----

// A size behind a check is told: where it is run on, the check holds.
// CHECK-LABEL: @size_behind_a_check
// CHECK: "migraphx.multibroadcast"(%arg1, %{{.*}}) {{.*}} -> tensor<?x4xf32>
// CHECK-NOT: "migraphx.broadcast_with_dims"
func.func @size_behind_a_check(%x: tensor<?x4xf32>, %y: tensor<4xf32>) -> tensor<?x4xf32> {
  %0 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x4xf32>) -> tensor<1xi64>
  %1 = "migraphx.literal"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "migraphx.greater"(%0, %1) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %3 = "migraphx.convert"(%2) {target_type = i1} : (tensor<1xi64>) -> tensor<1xi1>
  %4 = "migraphx.require"(%0, %3) {expected = "more than 3 rows"} : (tensor<1xi64>, tensor<1xi1>) -> tensor<1xi64>
  %5 = "migraphx.literal"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %6 = "migraphx.concat"(%4, %5) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %7 = "migraphx.broadcast_with_dims"(%y, %6) : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %8 = "migraphx.add"(%x, %7) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %8 : tensor<?x4xf32>
}

// -----

// In branches too: a weight that is repeated over two dynamic dims is a dot of rows.
// CHECK-LABEL: @in_a_branch
// CHECK: "migraphx.if"
// CHECK: %[[X:.*]] = "migraphx.reshape"(%arg1) {dims = array<i64: -1, 8>} : (tensor<?x?x8xf32>) -> tensor<?x8xf32>
// CHECK: "migraphx.dot"(%[[X]], %arg2) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
func.func @in_a_branch(%c: tensor<i1>, %x: tensor<?x?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x?x8xf32> {
  %r = "migraphx.if"(%c) ({
    %0 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x?x8xf32>) -> tensor<1xi64>
    %1 = "migraphx.literal"() {value = dense<8> : tensor<2xi64>} : () -> tensor<2xi64>
    %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
    %3 = "migraphx.broadcast_with_dims"(%w, %2) : (tensor<8x8xf32>, tensor<3xi64>) -> tensor<?x8x8xf32>
    %4 = "migraphx.dot"(%x, %3) : (tensor<?x?x8xf32>, tensor<?x8x8xf32>) -> tensor<?x?x8xf32>
    "migraphx.yield"(%4) : (tensor<?x?x8xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<?x?x8xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?x?x8xf32>
  return %r : tensor<?x?x8xf32>
}

// -----

// Near miss: what a branch needs of a size does not hold where the branch is not run. Beside x, a
// table of 16 that is cut to the length is cut to no less; outside of the branch it may be.
// CHECK-LABEL: @needed_in_a_branch_alone
// CHECK: "migraphx.if"
// CHECK: "migraphx.slice"
// CHECK: "migraphx.slice"
func.func @needed_in_a_branch_alone(%c: tensor<i1>, %x: tensor<?xf32>, %t: tensor<16xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = "migraphx.literal"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?xf32>) -> tensor<1xi64>
  %r = "migraphx.if"(%c) ({
    %2 = "migraphx.slice"(%t, %0, %1) {axes = array<i64: 0>, starts = array<i64>, ends = array<i64>} : (tensor<16xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
    %3 = "migraphx.add"(%x, %2) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    "migraphx.yield"(%3) : (tensor<?xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<?xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32>
  %4 = "migraphx.slice"(%t, %0, %1) {axes = array<i64: 0>, starts = array<i64>, ends = array<i64>} : (tensor<16xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %r, %4 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A reshape that states one dim copies the others with their names.
// CHECK-LABEL: @one_dim_is_stated
// CHECK: "migraphx.reshape"({{.*}}) {dims = array<i64: -1, 8>} : (tensor<?x?x{{8|[?]}}xf32>) -> tensor<?x8xf32>
// CHECK: "migraphx.dot"({{.*}}, %arg1) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
func.func @one_dim_is_stated(%x: tensor<?x?x?xf32>, %w: tensor<8x4xf32>) -> tensor<?x?x4xf32> {
  %0 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x?x?xf32>) -> tensor<1xi64>
  %1 = "migraphx.literal"() {value = dense<[8, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = "migraphx.concat"(%0, %1) {axis = 0 : i64} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %3 = "migraphx.broadcast_with_dims"(%w, %2) : (tensor<8x4xf32>, tensor<3xi64>) -> tensor<?x8x4xf32>
  %4 = "migraphx.reshape"(%x) {dims = array<i64: 0, 0, 8>} : (tensor<?x?x?xf32>) -> tensor<?x?x8xf32>
  %5 = "migraphx.dot"(%4, %3) : (tensor<?x?x8xf32>, tensor<?x8x4xf32>) -> tensor<?x?x4xf32>
  return %5 : tensor<?x?x4xf32>
}

// -----

// Dims of one name are read from the first argument that has them.
// CHECK-LABEL: @first_of_a_name
// CHECK: "migraphx.dimensions_of"(%arg0) {end = 1 : i64, start = 0 : i64}
// CHECK: "migraphx.dimensions_of"(%arg0) {end = 1 : i64, start = 0 : i64}
// CHECK-NOT: migraphx.dimensions_of
func.func @first_of_a_name(%x: tensor<?x2xf32> {migraphx.dims = [{min = 0 : i64, symbol = "n"}, 2 : i64]}, %y: tensor<?xf32> {migraphx.dims = [{min = 0 : i64, symbol = "n"}]}) -> (tensor<1xi64>, tensor<1xi64>) {
  %0 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x2xf32>) -> tensor<1xi64>
  %1 = "migraphx.dimensions_of"(%y) {start = 0 : i64, end = 1 : i64} : (tensor<?xf32>) -> tensor<1xi64>
  return %0, %1 : tensor<1xi64>, tensor<1xi64>
}
