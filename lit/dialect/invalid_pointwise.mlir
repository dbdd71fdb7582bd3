// What pointwise operators refuse.
// RUN: mgx-opt %s --split-input-file --verify-diagnostics

func.func @float_only(%x: tensor<4xi32>) {
  // expected-error @+1 {{'migraphx.exp' op expected a float type, got i32}}
  %0 = "migraphx.exp"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @no_bool(%x: tensor<4xi1>) {
  // expected-error @+1 {{'migraphx.neg' op expected a float or integer type, got i1}}
  %0 = "migraphx.neg"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @no_float(%x: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.not' op expected a bool or integer type, got f32}}
  %0 = "migraphx.not"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @result_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{'migraphx.relu' op result 0 expected tensor<4xf32>, got tensor<4xf16>}}
  %0 = "migraphx.relu"(%x) : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @result_dims(%x: tensor<?x3xf32>) {
  // expected-error @+1 {{'migraphx.tanh' op result 0 expected tensor<?x3xf32>, got tensor<?x4xf32>}}
  %0 = "migraphx.tanh"(%x) : (tensor<?x3xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @result_rank(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.sqrt' op result 0 expected tensor<3xf32>, got tensor<1x3xf32>}}
  %0 = "migraphx.sqrt"(%x) : (tensor<3xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @test_gives_bool(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.isnan' op result 0 expected tensor<3xi1>, got tensor<3xf32>}}
  %0 = "migraphx.isnan"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @attribute_kind(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.elu' op attribute 'alpha' expected an f64 float, got "one"}}
  %0 = "migraphx.elu"(%x) {alpha = "one"} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @dims(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) {
  // expected-error @+1 {{'migraphx.add' op expected operands of equal dims, got {2, 3} and {3, 2}}}
  %0 = "migraphx.add"(%x, %y) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

// Broadcasting is explicit: an extent of 1 does not stretch.
func.func @no_broadcast(%x: tensor<2x3xf32>, %y: tensor<1x3xf32>) {
  // expected-error @+1 {{'migraphx.mul' op expected operands of equal dims, got {2, 3} and {1, 3}}}
  %0 = "migraphx.mul"(%x, %y) : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @ranks(%x: tensor<?x3xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.sub' op expected operands of equal dims, got {?, 3} and {3}}}
  %0 = "migraphx.sub"(%x, %y) : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  return
}

// -----

func.func @types(%x: tensor<3xf32>, %y: tensor<3xf16>) {
  // expected-error @+1 {{'migraphx.max' op expected operands of one type, got f32 and f16}}
  %0 = "migraphx.max"(%x, %y) : (tensor<3xf32>, tensor<3xf16>) -> tensor<3xf32>
  return
}

// -----

// Signedness is part of the type.
func.func @signedness(%x: tensor<3xi8>, %y: tensor<3xui8>) {
  // expected-error @+1 {{'migraphx.min' op expected operands of one type, got i8 and ui8}}
  %0 = "migraphx.min"(%x, %y) : (tensor<3xi8>, tensor<3xui8>) -> tensor<3xi8>
  return
}

// -----

func.func @comparison_keeps_type(%x: tensor<3xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.less' op result 0 expected tensor<3xf32>, got tensor<3xi1>}}
  %0 = "migraphx.less"(%x, %y) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return
}

// -----

func.func @logic_of_floats(%x: tensor<3xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.logical_and' op expected a bool or integer type, got f32}}
  %0 = "migraphx.logical_and"(%x, %y) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @operand_count(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.add' op expected 2 operands, got 1}}
  %0 = "migraphx.add"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @unknown_element_type(%x: tensor<3xi4>) {
  // expected-error @+1 {{'migraphx.abs' op element type i4 is not supported, expected one of i1, f16}}
  %0 = "migraphx.abs"(%x) : (tensor<3xi4>) -> tensor<3xi4>
  return
}

// -----

func.func @condition(%c: tensor<3xf32>, %x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.where' op operand 'cond' expected a bool or integer type, got f32}}
  %0 = "migraphx.where"(%c, %x, %x) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @choices(%c: tensor<3xi1>, %x: tensor<3xf32>, %y: tensor<3xi32>) {
  // expected-error @+1 {{'migraphx.where' op expected choices of one type, got f32 and i32}}
  %0 = "migraphx.where"(%c, %x, %y) : (tensor<3xi1>, tensor<3xf32>, tensor<3xi32>) -> tensor<3xf32>
  return
}

// -----

func.func @convert_result(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.convert' op result 0 expected tensor<3xi8>, got tensor<3xui8>}}
  %0 = "migraphx.convert"(%x) {target_type = i8} : (tensor<3xf32>) -> tensor<3xui8>
  return
}

// -----

func.func @convert_overflow(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.convert' op overflow expected a target_type that is a float of 16 bits or more, got i8}}
  %0 = "migraphx.convert"(%x) {overflow = true, target_type = i8} : (tensor<3xf32>) -> tensor<3xi8>
  return
}

// -----

func.func @convert_target(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.convert' op element type i3 is not supported}}
  %0 = "migraphx.convert"(%x) {target_type = i3} : (tensor<3xf32>) -> tensor<3xi3>
  return
}

// -----

func.func @bit_cast_size(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.bit_cast' op expected a target type of 4 bytes as f32, got i16 of 2}}
  %0 = "migraphx.bit_cast"(%x) {target_type = i16} : (tensor<3xf32>) -> tensor<3xi16>
  return
}

// -----

func.func @bit_cast_target(%x: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.bit_cast' op requires attribute 'target_type'}}
  %0 = "migraphx.bit_cast"(%x) : (tensor<3xf32>) -> tensor<3xi32>
  return
}

// -----

func.func @scale_type(%x: tensor<4xf32>, %s: tensor<4xf16>) {
  // expected-error @+1 {{'migraphx.quantizelinear' op scale expected the input's type f32, got f16}}
  %0 = "migraphx.quantizelinear"(%x, %s) : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xui8>
  return
}

// -----

func.func @zero_point_type(%x: tensor<4xf32>, %z: tensor<4xi8>) {
  // expected-error @+1 {{'migraphx.quantizelinear' op zero_point expected type ui8, got i8}}
  %0 = "migraphx.quantizelinear"(%x, %x, %z) {out_type = ui8} : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xui8>
  return
}

// -----

func.func @zero_point_of_dequantize(%x: tensor<4xi8>, %s: tensor<4xf32>, %z: tensor<4xui8>) {
  // expected-error @+1 {{'migraphx.dequantizelinear' op zero_point expected the input's type i8, got ui8}}
  %0 = "migraphx.dequantizelinear"(%x, %s, %z) : (tensor<4xi8>, tensor<4xf32>, tensor<4xui8>) -> tensor<4xf32>
  return
}

// -----

func.func @bit_cast_bool(%a: tensor<4xi1>) {
  // expected-error @+1 {{'migraphx.bit_cast' op expected types other than i1}}
  %0 = "migraphx.bit_cast"(%a) {target_type = i8} : (tensor<4xi1>) -> tensor<4xi8>
  return
}

// -----

func.func @sin_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.sin' op expected a float type, got i1}}
  %0 = "migraphx.sin"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @cos_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.cos' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.cos"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @tan_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.tan' op expected a float type, got i1}}
  %0 = "migraphx.tan"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @asin_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.asin' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.asin"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @acos_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.acos' op expected a float type, got i1}}
  %0 = "migraphx.acos"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @atan_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.atan' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.atan"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @sinh_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.sinh' op expected a float type, got i1}}
  %0 = "migraphx.sinh"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @cosh_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.cosh' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.cosh"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @asinh_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.asinh' op expected a float type, got i1}}
  %0 = "migraphx.asinh"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @acosh_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.acosh' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.acosh"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @atanh_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.atanh' op expected a float type, got i1}}
  %0 = "migraphx.atanh"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @sign_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.sign' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.sign"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @ceil_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.ceil' op expected a float or integer type, got i1}}
  %0 = "migraphx.ceil"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @floor_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.floor' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.floor"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @nearbyint_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.nearbyint' op expected a float or integer type, got i1}}
  %0 = "migraphx.nearbyint"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @rsqrt_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.rsqrt' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.rsqrt"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @recip_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.recip' op expected a float type, got i1}}
  %0 = "migraphx.recip"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @log_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.log' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.log"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @log2_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.log2' op expected a float type, got i1}}
  %0 = "migraphx.log2"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @erf_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.erf' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.erf"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @sigmoid_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.sigmoid' op expected a float type, got i1}}
  %0 = "migraphx.sigmoid"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @leaky_relu_result(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'migraphx.leaky_relu' op result 0 expected tensor<2x3xf32>, got tensor<3x2xf32>}}
  %0 = "migraphx.leaky_relu"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @isinf_type(%a: tensor<2x3xi1>) {
  // expected-error @+1 {{'migraphx.isinf' op expected a float type, got i1}}
  %0 = "migraphx.isinf"(%a) : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @div_types(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error @+1 {{'migraphx.div' op expected operands of one type, got f32 and f64}}
  %0 = "migraphx.div"(%a, %b) : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf32>
  return
}

// -----

func.func @pow_dims(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.pow' op expected operands of equal dims, got {2, 3} and {3}}}
  %0 = "migraphx.pow"(%a, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @prelu_types(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error @+1 {{'migraphx.prelu' op expected operands of one type, got f32 and f64}}
  %0 = "migraphx.prelu"(%a, %b) : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf32>
  return
}

// -----

func.func @sqdiff_dims(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.sqdiff' op expected operands of equal dims, got {2, 3} and {3}}}
  %0 = "migraphx.sqdiff"(%a, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @fmod_types(%a: tensor<3xf32>, %b: tensor<3xf64>) {
  // expected-error @+1 {{'migraphx.fmod' op expected operands of one type, got f32 and f64}}
  %0 = "migraphx.fmod"(%a, %b) : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf32>
  return
}

// -----

func.func @mod_dims(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.mod' op expected operands of equal dims, got {2, 3} and {3}}}
  %0 = "migraphx.mod"(%a, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @equal_dims(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) {
  // expected-error @+1 {{'migraphx.equal' op expected operands of equal dims, got {2, 3} and {3, 2}}}
  %0 = "migraphx.equal"(%a, %b) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @greater_dims(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) {
  // expected-error @+1 {{'migraphx.greater' op expected operands of equal dims, got {2, 3} and {3, 2}}}
  %0 = "migraphx.greater"(%a, %b) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @logical_or_dims(%a: tensor<2x3xi1>, %b: tensor<3xi1>) {
  // expected-error @+1 {{'migraphx.logical_or' op expected operands of equal dims, got {2, 3} and {3}}}
  %0 = "migraphx.logical_or"(%a, %b) : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @logical_xor_dims(%a: tensor<2x3xi1>, %b: tensor<3xi1>) {
  // expected-error @+1 {{'migraphx.logical_xor' op expected operands of equal dims, got {2, 3} and {3}}}
  %0 = "migraphx.logical_xor"(%a, %b) : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @bitwise_and_type(%a: tensor<3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.bitwise_and' op expected a bool or integer type, got f32}}
  %0 = "migraphx.bitwise_and"(%a, %b) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @clip_types(%a: tensor<3xf32>, %b: tensor<3xi32>, %c: tensor<3xf32>) {
  // expected-error @+1 {{'migraphx.clip' op expected operands of one type, got f32 and i32}}
  %0 = "migraphx.clip"(%a, %b, %c) : (tensor<3xf32>, tensor<3xi32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @abs_result(%a: tensor<2x3xi32>) {
  // expected-error @+1 {{'migraphx.abs' op result 0 expected tensor<2x3xi32>, got tensor<2x3xf32>}}
  %0 = "migraphx.abs"(%a) : (tensor<2x3xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @elu_type(%a: tensor<2x3xi32>) {
  // expected-error @+1 {{'migraphx.elu' op expected a float type, got i32}}
  %0 = "migraphx.elu"(%a) : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return
}
