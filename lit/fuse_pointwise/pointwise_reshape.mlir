// RUN: mgx-opt %s --mgx-fuse-pointwise --split-input-file | filecheck %s

// The reshape moves behind; numbers and arguments take the dims ahead of it.
// CHECK-LABEL: @moved
// CHECK-NEXT: %[[B:.*]] = "migraphx.reshape"(%arg1) {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"({{.*}}) ({
// CHECK: migraphx.relu
// CHECK: migraphx.mul
// CHECK: migraphx.add
// CHECK: }) : {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %[[R:.*]] = "migraphx.reshape"(%[[K]]) {{.*}} -> tensor<6xf32>
// CHECK-NEXT: return %[[R]]
func.func @moved(%x: tensor<2x3xf32>, %b: tensor<6xf32>) -> tensor<6xf32> {
  %a = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reshape"(%a) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %l = "migraphx.literal"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %lw = "migraphx.multibroadcast"(%l) {out_lens = array<i64: 6>} : (tensor<1xf32>) -> tensor<6xf32>
  %m = "migraphx.mul"(%r, %lw) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %o = "migraphx.add"(%m, %b) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %o : tensor<6xf32>
}

// -----

// Two reshapes of the same dims; bools by another op than the one that reads them.
// CHECK-LABEL: @both
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"({{.*}}) ({
// CHECK-NOT: migraphx.pointwise
// CHECK: "migraphx.reshape"(%[[K]])
func.func @both(%x: tensor<2x1x3xf32>, %y: tensor<2x1x3xf32>) -> tensor<2x3xf32> {
  %a = "migraphx.neg"(%x) : (tensor<2x1x3xf32>) -> tensor<2x1x3xf32>
  %b = "migraphx.isnan"(%y) : (tensor<2x1x3xf32>) -> tensor<2x1x3xi1>
  %c = "migraphx.relu"(%y) : (tensor<2x1x3xf32>) -> tensor<2x1x3xf32>
  %ar = "migraphx.squeeze"(%a) {axes = array<i64: 1>} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
  %br = "migraphx.squeeze"(%b) {axes = array<i64: 1>} : (tensor<2x1x3xi1>) -> tensor<2x3xi1>
  %cr = "migraphx.squeeze"(%c) {axes = array<i64: 1>} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
  %o = "migraphx.where"(%br, %ar, %cr) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %o : tensor<2x3xf32>
}

// -----

// Near misses. The other operand has a kernel of its own, which would be cut off.
// CHECK-LABEL: @cut_off
// CHECK: migraphx.pointwise
// CHECK: migraphx.reshape
// CHECK: migraphx.pointwise
func.func @cut_off(%x: tensor<2x3xf32>, %b: tensor<6xf32>) -> tensor<6xf32> {
  %a = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reshape"(%a) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %n = "migraphx.neg"(%b) : (tensor<6xf32>) -> tensor<6xf32>
  %o = "migraphx.add"(%r, %n) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %o : tensor<6xf32>
}

// -----

// The reshape is read elsewhere too.
// CHECK-LABEL: @used
// CHECK: migraphx.pointwise
// CHECK: migraphx.reshape
// CHECK: migraphx.pointwise
func.func @used(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %a = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reshape"(%a) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %o = "migraphx.neg"(%r) : (tensor<6xf32>) -> tensor<6xf32>
  return %o, %r : tensor<6xf32>, tensor<6xf32>
}

// -----

// Not a pointwise op's result: nothing would join.
// CHECK-LABEL: @argument
// CHECK-NEXT: %[[R:.*]] = "migraphx.reshape"(%arg0)
// CHECK-NEXT: "migraphx.pointwise"(%[[R]])
func.func @argument(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %r = "migraphx.reshape"(%x) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %o = "migraphx.neg"(%r) : (tensor<6xf32>) -> tensor<6xf32>
  return %o : tensor<6xf32>
}

// -----

// Run-time dims.
// CHECK-LABEL: @dynamic
// CHECK: migraphx.pointwise
// CHECK: migraphx.unsqueeze
// CHECK: migraphx.pointwise
func.func @dynamic(%x: tensor<?x3xf32>) -> tensor<?x1x3xf32> {
  %a = "migraphx.relu"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %r = "migraphx.unsqueeze"(%a) {axes = array<i64: 1>} : (tensor<?x3xf32>) -> tensor<?x1x3xf32>
  %o = "migraphx.neg"(%r) : (tensor<?x1x3xf32>) -> tensor<?x1x3xf32>
  return %o : tensor<?x1x3xf32>
}

// -----

// A value that two read, one of them the other's result: x * sigmoid(x).
// CHECK-LABEL: @gate
// CHECK-NEXT: %[[K:.*]] = "migraphx.pointwise"(%arg0)
// CHECK: migraphx.relu
// CHECK-NEXT: migraphx.sigmoid
// CHECK-NEXT: migraphx.mul
// CHECK: "migraphx.reshape"(%[[K]]) {{.*}} -> tensor<6xf32>
// CHECK-NEXT: return
func.func @gate(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %a = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reshape"(%a) {dims = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %s = "migraphx.sigmoid"(%r) : (tensor<6xf32>) -> tensor<6xf32>
  %y = "migraphx.mul"(%r, %s) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

// A near miss: one of the two reads another op's result too, and would stay behind alone.
// CHECK-LABEL: @one_stays
// CHECK: migraphx.relu
// CHECK: "migraphx.reshape"({{.*}}) {{.*}} -> tensor<6x1xf32>
// CHECK: migraphx.sigmoid
func.func @one_stays(%x: tensor<2x3xf32>, %m: tensor<6x4xf32>) -> tensor<6x1xf32> {
  %a = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = "migraphx.reshape"(%a) {dims = array<i64: 6, 1>} : (tensor<2x3xf32>) -> tensor<6x1xf32>
  %s = "migraphx.sigmoid"(%r) : (tensor<6x1xf32>) -> tensor<6x1xf32>
  %d = "migraphx.reduce_sum"(%m) {axes = array<i64: 1>} : (tensor<6x4xf32>) -> tensor<6x1xf32>
  %y = "migraphx.mul"(%r, %d) : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32>
  %z = "migraphx.mul"(%y, %s) : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32>
  return %z : tensor<6x1xf32>
}
