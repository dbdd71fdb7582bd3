// Verifier errors of control flow.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @if_else_region_expected_1_results_then(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.if' op else region expected 1 results as the then region, got 0}}
  %0 = "migraphx.if"(%t) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"() : () -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @if_else_region_result_type(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2xi32>) {
  // expected-error @+1 {{'migraphx.if' op else region result 0 expected tensor<2xf32> as the then region, got tensor<2xi32>}}
  %0 = "migraphx.if"(%t) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%y) : (tensor<2xi32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @if_else_region_result_type_b(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2x1xf32>) {
  // expected-error @+1 {{'migraphx.if' op else region result 0 expected tensor<2xf32> as the then region, got tensor<2x1xf32>}}
  %0 = "migraphx.if"(%t) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%y) : (tensor<2x1xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @if_condition_expected_type_i1(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.if' op condition expected type i1, got i64}}
  %0 = "migraphx.if"(%n) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i64>) -> tensor<2xf32>
  return
}

// -----

func.func @if_condition_expected_1_element(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>, %c: tensor<2xi1>) {
  // expected-error @+1 {{'migraphx.if' op condition expected 1 element, got 2}}
  %0 = "migraphx.if"(%c) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<2xi1>) -> tensor<2xf32>
  return
}

// -----

func.func @if_result_type(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.if' op result 0 expected tensor<2xf32>, got tensor<3xf32>}}
  %0 = "migraphx.if"(%t) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<3xf32>
  return
}

// -----

func.func @if_then_region_expected_1_block_arguments(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.if' op then region expected 1 block arguments, got 0}}
  %0 = "migraphx.if"(%t, %x) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @if_else_region_block_argument_0_expected(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.if' op else region block argument 0 expected tensor<2xf32>, got tensor<3xf32>}}
  %0 = "migraphx.if"(%t, %x) ({
  ^bb0(%a: tensor<2xf32>):
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
  ^bb0(%a: tensor<3xf32>):
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @if_then_region_expected_end_migraphx_yield(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.if' op then region expected to end with migraphx.yield}}
  %0 = "migraphx.if"(%t) ({
    %1 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  }, {
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_body_expected_3_block_arguments(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op body expected 3 block arguments (iteration, condition, 1 carried), got 2}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>):
    "migraphx.yield"(%c, %x) : (tensor<i1>, tensor<2xf32>) -> ()
  }) {} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_body_block_argument_0_expected(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op body block argument 0 expected tensor<i64>, got tensor<i32>}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i32>, %c: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%c, %v) : (tensor<i1>, tensor<2xf32>) -> ()
  }) {} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_carried_value_0_expected(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op carried value 0 expected tensor<3xf32>, got tensor<2xf32>}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<3xf32>):
    "migraphx.yield"(%c, %v) : (tensor<i1>, tensor<3xf32>) -> ()
  }) {} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @loop_body_expected_at_least_2_yielded(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op body expected at least 2 yielded values, got 1}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%c) : (tensor<i1>) -> ()
  }) {} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_condition_expected_type_i1(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op condition expected type i1, got f32}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%v, %v) : (tensor<2xf32>, tensor<2xf32>) -> ()
  }) {} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_body_yielded_value_0_expected(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op body yielded value 0 expected tensor<2xf32>, got tensor<i64>}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%c, %i) : (tensor<i1>, tensor<i64>) -> ()
  }) {} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_expected_2_results(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op expected 2 results, got 1}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%c, %v, %v) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_scan_output_directions_expected_0_numbers_0_or(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op scan_output_directions expected 0 numbers 0 or 1, got [0]}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%c, %v) : (tensor<i1>, tensor<2xf32>) -> ()
  }) {scan_output_directions = array<i64: 0>} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_max_iterations_expected_at_least_0(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op max_iterations expected at least 0, got -1}}
  %0 = "migraphx.loop"(%n, %t, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%c, %v) : (tensor<i1>, tensor<2xf32>) -> ()
  }) {max_iterations = -1 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_iterations_expected_integer_type(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op iterations expected an integer type, got f32}}
  "migraphx.loop"(%x, %t) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>):
    "migraphx.yield"(%c) : (tensor<i1>) -> ()
  }) {} : (tensor<2xf32>, tensor<i1>) -> ()
  return
}

// -----

func.func @select_module_callees_expected_at_least_one_function(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.select_module' op callees expected at least one function, got none}}
  %0 = "migraphx.select_module"(%x) {callees = []} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @select_module_attribute_callees_expected_list_symbols(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.select_module' op attribute 'callees' expected a list of symbols, got ["one"]}}
  %0 = "migraphx.select_module"(%x) {callees = ["one"]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @run_on_target_target_id_expected_at_least_0(%n: tensor<i64>, %t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.run_on_target' op target_id expected at least 0, got -1}}
  %0 = "migraphx.run_on_target"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    "migraphx.yield"(%a) : (tensor<2xf32>) -> ()
  }) {target_id = -1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_iterations(%n: tensor<2xi64>, %c: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.loop' op iterations expected 1 element, got 2}}
  %0 = "migraphx.loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %d: tensor<i1>, %v: tensor<2xf32>):
    "migraphx.yield"(%d, %v) : (tensor<i1>, tensor<2xf32>) -> ()
  }) : (tensor<2xi64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @no_block(%t: tensor<i1>) {
  // expected-error @+1 {{'migraphx.if' op then region expected one block, got 0}}
  %0 = "migraphx.if"(%t) ({}, {}) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @two_blocks(%t: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @+1 {{'migraphx.if' op then region expected one block, got 2}}
  %0 = "migraphx.if"(%t) ({
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  ^bb1:
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}
