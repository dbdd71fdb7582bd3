// Verifier errors of decision trees.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @tree_leaves_x_rank(%a: tensor<5x4x1xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf32>, %e: tensor<7xi32>, %f: tensor<7xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op x expected rank 2, got rank 3}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f) {} : (tensor<5x4x1xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_split_rank(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7x1xf32>, %e: tensor<7xi32>, %f: tensor<7xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op split expected rank 1, got rank 2}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7x1xf32>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_one_type(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf64>, %e: tensor<7xi32>, %f: tensor<7xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op expected operands of one type, got f32 and f64}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf64>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_index_type(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf32>, %e: tensor<7xf32>, %f: tensor<7xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op yes expected an integer type, got f32}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xf32>, tensor<7xi32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_nodes(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf32>, %e: tensor<7xi32>, %f: tensor<6xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op no expected 7 nodes, got 6}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<6xi32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_missing_type(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf32>, %e: tensor<7xi32>, %f: tensor<7xi32>, %g: tensor<7xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op missing expected i1, got i32}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f, %g) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_depth(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf32>, %e: tensor<7xi32>, %f: tensor<7xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op depth expected at least 0, got -1}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f) {depth = -1 : i64} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_mode(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf32>, %e: tensor<7xi32>, %f: tensor<7xi32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op attribute 'mode' expected one of le, lt, ge, gt, eq, ne, got less}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d, %e, %f) {mode = "less"} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>, tensor<7xi32>, tensor<7xi32>) -> tensor<5x2xi64>
  return
}
