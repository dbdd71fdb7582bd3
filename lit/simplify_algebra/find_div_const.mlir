// RUN: mgx-opt %s --mgx-simplify-algebra --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-simplify-algebra=fast-math=true --split-input-file | filecheck %s --check-prefix=FAST

// Powers of two have exact reciprocals.

// CHECK-LABEL: @constant
// CHECK: %[[R:.*]] = "migraphx.recip"
// CHECK: "migraphx.mul"(%arg0, %[[R]])
func.func @constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[4.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Near misses: integers, no constant.
// CHECK-LABEL: @integer
// CHECK: migraphx.div
func.func @integer(%x: tensor<2xi32>) -> tensor<2xi32> {
  %c = "migraphx.literal"() {value = dense<[4, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// CHECK-LABEL: @variable
// CHECK: migraphx.div
func.func @variable(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.div"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Others are rounded, which fast-math allows.
// CHECK-LABEL: @rounded
// CHECK: migraphx.div
// FAST-LABEL: @rounded
// FAST: %[[R:.*]] = "migraphx.recip"
// FAST: "migraphx.mul"(%arg0, %[[R]])
func.func @rounded(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = "migraphx.literal"() {value = dense<[4.0, 41.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Where a step follows, also behind other ops, the last bit counts.
// FAST-LABEL: @floor
// FAST: migraphx.div
func.func @floor(%x: tensor<2xf32>) -> tensor<1x2xi64> {
  %c = "migraphx.literal"() {value = dense<41.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.unsqueeze"(%1) {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<1x2xf32>
  %3 = "migraphx.convert"(%2) {target_type = i64} : (tensor<1x2xf32>) -> tensor<1x2xi64>
  return %3 : tensor<1x2xi64>
}

// -----

// Behind a sum over an axis it does not: that is rounded otherwise by everybody.
// FAST-LABEL: @summed
// FAST: migraphx.recip
// FAST: migraphx.floor
func.func @summed(%x: tensor<2xf32>) -> tensor<1xf32> {
  %c = "migraphx.literal"() {value = dense<41.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  %2 = "migraphx.floor"(%1) : (tensor<1xf32>) -> tensor<1xf32>
  return %2 : tensor<1xf32>
}

// -----

// The reciprocal is no normal number: it would be flushed to 0, or is infinite.
// FAST-LABEL: @large
// FAST: migraphx.div
// FAST: migraphx.div
func.func @large(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = "migraphx.literal"() {value = dense<[3.0e38, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %d = "migraphx.literal"() {value = dense<[0.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.div"(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.div"(%x, %d) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
