// RUN: mgx-opt %s --mgx-propagate-constant --mgx-dead-code-elimination --split-input-file | filecheck %s
// RUN: mgx-opt %s --mgx-propagate-constant="skip=exp,neg max-growth=8" --mgx-dead-code-elimination --split-input-file | filecheck %s --check-prefix=SKIP

// Only the last op of a constant expression becomes a literal.
// CHECK-LABEL: @chain
// CHECK-NEXT: %[[C:.*]] = "migraphx.literal"() {value = dense<[3.0{{.*}}, 5.0{{.*}}]> : tensor<2xf32>}
// CHECK-NEXT: "migraphx.add"(%arg0, %[[C]])
// SKIP-LABEL: @chain
// SKIP: migraphx.mul
func.func @chain(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = "migraphx.literal"() {value = dense<[-1.0, -2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.literal"() {value = dense<[1.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %c = "migraphx.literal"() {value = dense<[2.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "migraphx.neg"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.mul"(%0, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.add"(%1, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = "migraphx.add"(%x, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// -----

// A returned constant, and several results.
// CHECK-LABEL: @returned
// CHECK-DAG: %[[V:.*]] = "migraphx.literal"() {value = dense<[5, 3]> : tensor<2xi32>}
// CHECK-DAG: %[[I:.*]] = "migraphx.literal"() {value = dense<[1, 2]> : tensor<2xi64>}
// CHECK: return %[[V]], %[[I]]
func.func @returned() -> (tensor<2xi32>, tensor<2xi64>) {
  %a = "migraphx.literal"() {value = dense<[1, 5, 3]> : tensor<3xi32>} : () -> tensor<3xi32>
  %0:2 = "migraphx.topk"(%a) {k = 2 : i64} : (tensor<3xi32>) -> (tensor<2xi32>, tensor<2xi64>)
  return %0#0, %0#1 : tensor<2xi32>, tensor<2xi64>
}

// -----

// A broadcast stays; what is computed from it may not grow beyond the limit.
// CHECK-LABEL: @broadcast
// CHECK: %[[L:.*]] = "migraphx.literal"() {value = dense<[1.0{{.*}}, 2.0{{.*}}]> : tensor<2xf32>}
// CHECK: "migraphx.multibroadcast"(%[[L]])
// CHECK: "migraphx.literal"() {value = dense<{{.*}}> : tensor<3x2xf32>}
// SKIP-LABEL: @broadcast
// SKIP: migraphx.multibroadcast
// SKIP: migraphx.exp
func.func @broadcast(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %a = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "migraphx.multibroadcast"(%a) {out_lens = array<i64: 3, 2>} : (tensor<2xf32>) -> tensor<3x2xf32>
  %0 = "migraphx.mul"(%x, %b) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.exp"(%b) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %0, %1 : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// CHECK-LABEL: @not_constant
// CHECK-NEXT: migraphx.neg
// CHECK-NEXT: return
func.func @not_constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
