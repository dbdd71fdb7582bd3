// Verifier errors of decision trees.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @tree_leaves_x_rank(%a: tensor<5x4x1xf32>, %b: tensor<2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op x expected rank 2, got rank 3}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4x1xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_roots_rank(%a: tensor<5x4xf32>, %b: tensor<2x1xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op roots expected rank 1, got rank 2}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2x1xi32>, tensor<7x3xi32>, tensor<7xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_nodes_rank(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7xi32>, %d: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op nodes expected rank 2, got rank 1}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7xi32>, tensor<7xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_split_rank(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7x3xi32>, %d: tensor<7x1xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op split expected rank 1, got rank 2}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7x1xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_one_type(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf64>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op expected operands of one type, got f32 and f64}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7xf64>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_roots_type(%a: tensor<5x4xf32>, %b: tensor<2xf32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op roots expected an integer type, got f32}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2xf32>, tensor<7x3xi32>, tensor<7xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_nodes_type(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7x3xf32>, %d: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op nodes expected an integer type, got f32}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xf32>, tensor<7xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_columns(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7x5xi32>, %d: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op nodes expected a static 3 or 4 columns, got tensor<7x5xi32>}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x5xi32>, tensor<7xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_nodes(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7x3xi32>, %d: tensor<6xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op split expected 7 nodes, got 6}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<6xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_leaves_depth(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_leaves' op depth expected at least 0, got -1}}
  %0 = "migraphx.tree_leaves"(%a, %b, %c, %d) {depth = -1 : i64} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7xf32>) -> tensor<5x2xi64>
  return
}

// -----

func.func @tree_sums_roots_rank(%a: tensor<5x4xf32>, %b: tensor<2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>, %e: tensor<7x2xf32>) {
  // expected-error @+1 {{'migraphx.tree_sums' op roots expected rank 2, got rank 1}}
  %0 = "migraphx.tree_sums"(%a, %b, %c, %d, %e) {} : (tensor<5x4xf32>, tensor<2xi32>, tensor<7x3xi32>, tensor<7xf32>, tensor<7x2xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @tree_sums_weights_rank(%a: tensor<5x4xf32>, %b: tensor<1x2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>, %e: tensor<7xf32>) {
  // expected-error @+1 {{'migraphx.tree_sums' op weights expected rank 2, got rank 1}}
  %0 = "migraphx.tree_sums"(%a, %b, %c, %d, %e) {} : (tensor<5x4xf32>, tensor<1x2xi32>, tensor<7x3xi32>, tensor<7xf32>, tensor<7xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @tree_sums_one_type(%a: tensor<5x4xf32>, %b: tensor<1x2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>, %e: tensor<7x2xf64>) {
  // expected-error @+1 {{'migraphx.tree_sums' op expected operands of one type, got f32 and f64}}
  %0 = "migraphx.tree_sums"(%a, %b, %c, %d, %e) {} : (tensor<5x4xf32>, tensor<1x2xi32>, tensor<7x3xi32>, tensor<7xf32>, tensor<7x2xf64>) -> tensor<5x2xf32>
  return
}

// -----

func.func @tree_sums_nodes(%a: tensor<5x4xf32>, %b: tensor<1x2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>, %e: tensor<6x2xf32>) {
  // expected-error @+1 {{'migraphx.tree_sums' op weights expected 7 nodes, got 6}}
  %0 = "migraphx.tree_sums"(%a, %b, %c, %d, %e) {} : (tensor<5x4xf32>, tensor<1x2xi32>, tensor<7x3xi32>, tensor<7xf32>, tensor<6x2xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @tree_sums_dynamic_outputs(%a: tensor<5x4xf32>, %b: tensor<1x2xi32>, %c: tensor<7x3xi32>, %d: tensor<7xf32>, %e: tensor<7x?xf32>) {
  // expected-error @+1 {{'migraphx.tree_sums' op expected a static number of groups and outputs, got tensor<1x2xi32>, tensor<7x?xf32>}}
  %0 = "migraphx.tree_sums"(%a, %b, %c, %d, %e) {} : (tensor<5x4xf32>, tensor<1x2xi32>, tensor<7x3xi32>, tensor<7xf32>, tensor<7x?xf32>) -> tensor<5x2xf32>
  return
}
