// RUN: mgx-opt %s --verify-diagnostics --split-input-file

// Errors, notes and every way to name the line.
// expected-note@+1 {{prior use here}}
func.func @f(%a: f32) -> f32 {
  // expected-error@below {{expects different type than prior uses: 'f64' vs 'f32'}}
  %0 = arith.addf %a, %a : f64
  return %0 : f32
}

// -----

func.func @above(%a: f32) -> f32 {
  "arith.addf"(%a) : (f32) -> f32
  // expected-error@above {{expected 2 operands, but found 1}}
  return %a : f32
}

// -----

func.func @same_line(%a: f32) -> f32 {
  return %a, %a : f32, f32 // expected-error {{has 2 operands, but enclosing function}}
}

// -----

func.func @regex(%a: f32) -> f32 {
  // expected-error-re@+1 {{has {{[0-9]}} operands, but enclosing {{f.*n}}}}
  return %a, %a : f32, f32
}

// -----

// expected-error@+1 {{unregistered operation 'migraphx.frob' found in dialect}}
"migraphx.frob"() : () -> ()
