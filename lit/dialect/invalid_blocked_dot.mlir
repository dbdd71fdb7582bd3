// What products with weights of few bits refuse.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @bits(%x: tensor<1x8xf32>, %w: tensor<4x2xui8>, %s: tensor<1x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op bits expected 4, 8 or 16, got 3}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 8 : i64, bits = 3 : i64} : (tensor<1x8xf32>, tensor<4x2xui8>, tensor<1x2xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @rows(%x: tensor<1x8xf32>, %w: tensor<8x2xui8>, %s: tensor<1x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op codes expected 4 rows, got tensor<8x2xui8>}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 8 : i64} : (tensor<1x8xf32>, tensor<8x2xui8>, tensor<1x2xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @columns(%x: tensor<1x8xf32>, %w: tensor<4x?xui8>, %s: tensor<1x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op codes expected a known last extent, got tensor<4x?xui8>}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 8 : i64} : (tensor<1x8xf32>, tensor<4x?xui8>, tensor<1x2xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @blocks(%x: tensor<1x24xf32>, %w: tensor<12x2xui8>, %s: tensor<3x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op scales expected 2 x 2, got tensor<3x2xf32>}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 16 : i64} : (tensor<1x24xf32>, tensor<12x2xui8>, tensor<3x2xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @block_size(%x: tensor<1x8xf32>, %w: tensor<4x2xui8>, %s: tensor<1x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op block_size expected 1 or more, got 0}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 0 : i64} : (tensor<1x8xf32>, tensor<4x2xui8>, tensor<1x2xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @rank(%x: tensor<8xf32>, %w: tensor<4x2xui8>, %s: tensor<1x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op input expected rank 2 or more, got tensor<8xf32>}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 8 : i64} : (tensor<8xf32>, tensor<4x2xui8>, tensor<1x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @depth(%x: tensor<1x?xf32>, %w: tensor<4x2xui8>, %s: tensor<1x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op input expected a known last extent}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 8 : i64} : (tensor<1x?xf32>, tensor<4x2xui8>, tensor<1x2xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @minima(%x: tensor<1x8xf32>, %w: tensor<4x2xui8>, %s: tensor<1x2xf32>) {
  // expected-error @+1 {{'migraphx.blocked_dot' op minima expected zero_points, which are not given}}
  %0 = "migraphx.blocked_dot"(%x, %w, %s) {block_size = 8 : i64, minima = true} : (tensor<1x8xf32>, tensor<4x2xui8>, tensor<1x2xf32>) -> tensor<1x2xf32>
  return
}
