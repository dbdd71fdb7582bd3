// Literals and kernel ops: what the verifier refuses.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @both() -> tensor<2xf32> {
  // expected-error@+1 {{'migraphx.literal' op expected one of the attributes 'value' and 'key'}}
  %0 = "migraphx.literal"() {value = dense<1.0> : tensor<2xf32>, key = "x"} : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @neither() -> tensor<2xf32> {
  // expected-error@+1 {{'migraphx.literal' op expected one of the attributes 'value' and 'key'}}
  %0 = "migraphx.literal"() : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @type() -> tensor<3xf32> {
  // expected-error@+1 {{'migraphx.literal' op result 0 expected tensor<2xf32>, got tensor<3xf32>}}
  %0 = "migraphx.literal"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @arguments(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'migraphx.pointwise' op expected 1 block arguments, got 0}}
  %0 = "migraphx.pointwise"(%x) ({
    "migraphx.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @argument_type(%x: tensor<4xf32>) -> tensor<4xf16> {
  // expected-error@+1 {{'migraphx.group' op block argument 0 expected tensor<4xf32>, got tensor<4xf16>}}
  %0 = "migraphx.group"(%x) ({
  ^bb0(%a: tensor<4xf16>):
    "migraphx.yield"(%a) : (tensor<4xf16>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

func.func @yielded(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{'migraphx.pointwise' op result 0 expected tensor<4xf32>, got tensor<5xf32>}}
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "migraphx.yield"(%a) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @assign(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{'migraphx.split_fused_reduce' op attribute 'assign' expected one of assign_none, assign_add, got assign_mul}}
  %0 = "migraphx.split_fused_reduce"(%x) ({
  ^bb0(%a: tensor<2x3xf32>):
    "migraphx.yield"(%a) : (tensor<2x3xf32>) -> ()
  }) {axes = array<i64: 1>, assign = "assign_mul"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @no_yield(%x: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.pointwise' op expected a region that ends with migraphx.yield}}
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %1 = "migraphx.neg"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @other_end(%x: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.pointwise' op expected a region that ends with migraphx.yield}}
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    func.return %a : tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @fused_reduce_result(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'migraphx.fused_reduce' op result 0 expected tensor<4x1xf32>, got tensor<4x8xf32>}}
  %0 = "migraphx.fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    "migraphx.yield"(%1) : (tensor<4x1xf32>) -> ()
  }) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @fused_concat_arguments(%x: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.fused_concat' op expected 1 block arguments, got 0}}
  %0 = "migraphx.fused_concat"(%x) ({
    "migraphx.yield"(%x) : (tensor<4xf32>) -> ()
  }) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @split_fused_reduce_result(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'migraphx.split_fused_reduce' op result 0 expected tensor<4x1xf32>, got tensor<4x8xf32>}}
  %0 = "migraphx.split_fused_reduce"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    "migraphx.yield"(%1) : (tensor<4x1xf32>) -> ()
  }) {axes = array<i64: 1>, assign = "assign_add"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
