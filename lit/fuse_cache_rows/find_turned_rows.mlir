// RUN: mgx-opt %s --mgx-fuse-cache-rows --mgx-dead-code-elimination --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-fuse-cache-rows='turned=false' --split-input-file | filecheck %s --check-prefix=OFF

// OFF-NOT: "migraphx.concat_past_present"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %
// CHECK-LABEL: @rope
// CHECK-NEXT: %[[K:.*]] = "migraphx.concat_past_present"(%arg0, %arg3, %arg4, %arg1, %arg2) {{.*}}kv_num_heads = 2 : i64
// CHECK-NEXT: return %[[K]]
func.func @rope(%x: tensor<1x2x3x8xf32>, %c: tensor<1x1x3x8xf32>, %s: tensor<1x1x3x8xf32>, %n: tensor<1xi32>, %p: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %cos = "migraphx.multibroadcast"(%c) {out_lens = array<i64: 1, 2, 3, 8>} : (tensor<1x1x3x8xf32>) -> tensor<1x2x3x8xf32>
  %sin = "migraphx.multibroadcast"(%s) {out_lens = array<i64: 1, 2, 3, 8>} : (tensor<1x1x3x8xf32>) -> tensor<1x2x3x8xf32>
  %straight = "migraphx.mul"(%cos, %x) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %high = "migraphx.slice"(%x) {axes = array<i64: 3>, starts = array<i64: 4>, ends = array<i64: 8>} : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x4xf32>
  %back = "migraphx.neg"(%high) : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %low = "migraphx.slice"(%x) {axes = array<i64: 3>, starts = array<i64: 0>, ends = array<i64: 4>} : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x4xf32>
  %turned = "migraphx.concat"(%back, %low) {axis = 3 : i64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x8xf32>
  %crossed = "migraphx.mul"(%turned, %sin) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %sum = "migraphx.add"(%straight, %crossed) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %k = "migraphx.concat_past_present"(%sum, %n, %p) {kv_num_heads = 2 : i64} : (tensor<1x2x3x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %k : tensor<1x2x6x8xf32>
}

// -----

// The halves are the other way round, so the angle is the other way round.
// CHECK-LABEL: @other_way_round
// CHECK: migraphx.concat"
// CHECK: "migraphx.concat_past_present"(%{{[0-9]+}}, %arg3, %arg4)
func.func @other_way_round(%x: tensor<1x2x3x8xf32>, %c: tensor<1x2x3x8xf32>, %s: tensor<1x2x3x8xf32>, %n: tensor<1xi32>, %p: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %straight = "migraphx.mul"(%c, %x) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %high = "migraphx.slice"(%x) {axes = array<i64: 3>, starts = array<i64: 4>, ends = array<i64: 8>} : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x4xf32>
  %low = "migraphx.slice"(%x) {axes = array<i64: 3>, starts = array<i64: 0>, ends = array<i64: 4>} : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x4xf32>
  %back = "migraphx.neg"(%low) : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %turned = "migraphx.concat"(%back, %high) {axis = 3 : i64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x8xf32>
  %crossed = "migraphx.mul"(%turned, %s) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %sum = "migraphx.add"(%straight, %crossed) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %k = "migraphx.concat_past_present"(%sum, %n, %p) {} : (tensor<1x2x3x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %k : tensor<1x2x6x8xf32>
}

// -----

// Each head has angles of its own.
// CHECK-LABEL: @angles_of_heads
// CHECK: migraphx.concat"
// CHECK: "migraphx.concat_past_present"(%{{[0-9]+}}, %arg3, %arg4)
func.func @angles_of_heads(%x: tensor<1x2x3x8xf32>, %c: tensor<1x2x3x8xf32>, %s: tensor<1x2x3x8xf32>, %n: tensor<1xi32>, %p: tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32> {
  %straight = "migraphx.mul"(%x, %c) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %high = "migraphx.slice"(%x) {axes = array<i64: 3>, starts = array<i64: 4>, ends = array<i64: 8>} : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x4xf32>
  %back = "migraphx.neg"(%high) : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %low = "migraphx.slice"(%x) {axes = array<i64: 3>, starts = array<i64: 0>, ends = array<i64: 4>} : (tensor<1x2x3x8xf32>) -> tensor<1x2x3x4xf32>
  %turned = "migraphx.concat"(%back, %low) {axis = 3 : i64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x8xf32>
  %crossed = "migraphx.mul"(%turned, %s) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %sum = "migraphx.add"(%straight, %crossed) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  %k = "migraphx.concat_past_present"(%sum, %n, %p) {} : (tensor<1x2x3x8xf32>, tensor<1xi32>, tensor<1x2x6x8xf32>) -> tensor<1x2x6x8xf32>
  return %k : tensor<1x2x6x8xf32>
}

// -----

// Keys are a slice of what queries are a slice of, too, and so are their halves.
// CHECK-LABEL: @beside_queries
// CHECK-NEXT: %[[X:.*]] = "migraphx.slice"(%arg0)
// CHECK-NEXT: "migraphx.concat_past_present"(%[[X]], %arg3, %arg4, %arg1, %arg2)
func.func @beside_queries(%q: tensor<1x4x3x8xf16>, %c: tensor<1x1x3x8xf16>, %s: tensor<1x1x3x8xf16>, %n: tensor<1xi32>, %p: tensor<1x1x6x8xf16>) -> tensor<1x1x6x8xf16> {
  %x = "migraphx.slice"(%q) {axes = array<i64: 1>, starts = array<i64: 2>, ends = array<i64: 3>} : (tensor<1x4x3x8xf16>) -> tensor<1x1x3x8xf16>
  %straight = "migraphx.mul"(%x, %c) : (tensor<1x1x3x8xf16>, tensor<1x1x3x8xf16>) -> tensor<1x1x3x8xf16>
  %high = "migraphx.slice"(%q) {axes = array<i64: 1, 3>, starts = array<i64: 2, 4>, ends = array<i64: 3, 8>} : (tensor<1x4x3x8xf16>) -> tensor<1x1x3x4xf16>
  %back = "migraphx.neg"(%high) : (tensor<1x1x3x4xf16>) -> tensor<1x1x3x4xf16>
  %low = "migraphx.slice"(%q) {axes = array<i64: 1, 3>, starts = array<i64: 2, 0>, ends = array<i64: 3, 4>} : (tensor<1x4x3x8xf16>) -> tensor<1x1x3x4xf16>
  %turned = "migraphx.concat"(%back, %low) {axis = 3 : i64} : (tensor<1x1x3x4xf16>, tensor<1x1x3x4xf16>) -> tensor<1x1x3x8xf16>
  %crossed = "migraphx.mul"(%turned, %s) : (tensor<1x1x3x8xf16>, tensor<1x1x3x8xf16>) -> tensor<1x1x3x8xf16>
  %sum = "migraphx.add"(%straight, %crossed) : (tensor<1x1x3x8xf16>, tensor<1x1x3x8xf16>) -> tensor<1x1x3x8xf16>
  %k = "migraphx.concat_past_present"(%sum, %n, %p) {} : (tensor<1x1x3x8xf16>, tensor<1xi32>, tensor<1x1x6x8xf16>) -> tensor<1x1x6x8xf16>
  return %k : tensor<1x1x6x8xf16>
}
