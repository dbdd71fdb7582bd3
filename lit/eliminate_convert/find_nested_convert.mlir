// RUN: mgx-opt %s --mgx-eliminate-convert --split-input-file | filecheck %s

// There and back through a type that holds every value.
// CHECK-LABEL: @there_and_back
// CHECK-NEXT: return %arg0
func.func @there_and_back(%x: tensor<2xf16>) -> tensor<2xf16> {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xf16>) -> tensor<2xf32>
  %1 = "migraphx.convert"(%0) {target_type = f16} : (tensor<2xf32>) -> tensor<2xf16>
  return %1 : tensor<2xf16>
}

// -----

// CHECK-LABEL: @onwards
// CHECK-NEXT: "migraphx.convert"(%arg0) {target_type = f32}
// CHECK-NEXT: return
func.func @onwards(%x: tensor<2xui8>) -> tensor<2xf32> {
  %0 = "migraphx.convert"(%x) {target_type = i32} : (tensor<2xui8>) -> tensor<2xi32>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<2xi32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Near misses: each of these loses something on the way.
// CHECK-LABEL: @precision
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.convert
func.func @precision(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.convert"(%x) {target_type = f16} : (tensor<2xf32>) -> tensor<2xf16>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<2xf16>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @truncation
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.convert
func.func @truncation(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.convert"(%x) {target_type = i64} : (tensor<2xf32>) -> tensor<2xi64>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<2xi64>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// 2**24 + 1 is no f32.
// CHECK-LABEL: @digits
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.convert
func.func @digits(%x: tensor<2xi32>) -> tensor<2xi64> {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xi32>) -> tensor<2xf32>
  %1 = "migraphx.convert"(%0) {target_type = i64} : (tensor<2xf32>) -> tensor<2xi64>
  return %1 : tensor<2xi64>
}

// -----

// CHECK-LABEL: @range
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.convert
func.func @range(%x: tensor<2xbf16>) -> tensor<2xf32> {
  %0 = "migraphx.convert"(%x) {target_type = f16} : (tensor<2xbf16>) -> tensor<2xf16>
  %1 = "migraphx.convert"(%0) {target_type = f32} : (tensor<2xf16>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// -1 as f32 becomes 0 in ui8, where an i16 of -1 becomes 255.
// CHECK-LABEL: @wrapping
// CHECK-NEXT: migraphx.convert
// CHECK-NEXT: migraphx.convert
func.func @wrapping(%x: tensor<2xi16>) -> tensor<2xui8> {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xi16>) -> tensor<2xf32>
  %1 = "migraphx.convert"(%0) {target_type = ui8} : (tensor<2xf32>) -> tensor<2xui8>
  return %1 : tensor<2xui8>
}

// -----

// Every i16 is an i32: nothing stops and nothing wraps.
// CHECK-LABEL: @wider
// CHECK-NEXT: "migraphx.convert"(%arg0) {target_type = i32}
// CHECK-NEXT: return
func.func @wider(%x: tensor<2xi16>) -> tensor<2xi32> {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xi16>) -> tensor<2xf32>
  %1 = "migraphx.convert"(%0) {target_type = i32} : (tensor<2xf32>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}

// -----

// What is too large becomes infinite only where the last conversion says so.
// CHECK-LABEL: @overflow
// CHECK-NEXT: "migraphx.convert"(%arg0) {overflow = true, target_type = bf16} : (tensor<2xf16>) -> tensor<2xbf16>
// CHECK-NEXT: "migraphx.convert"(%arg1) {target_type = f16} : (tensor<2xi32>) -> tensor<2xf16>
func.func @overflow(%x: tensor<2xf16>, %i: tensor<2xi32>) -> (tensor<2xbf16>, tensor<2xf16>) {
  %0 = "migraphx.convert"(%x) {target_type = f32} : (tensor<2xf16>) -> tensor<2xf32>
  %1 = "migraphx.convert"(%0) {target_type = bf16, overflow = true} : (tensor<2xf32>) -> tensor<2xbf16>
  %2 = "migraphx.convert"(%i) {target_type = f64, overflow = true} : (tensor<2xi32>) -> tensor<2xf64>
  %3 = "migraphx.convert"(%2) {target_type = f16} : (tensor<2xf64>) -> tensor<2xf16>
  return %1, %3 : tensor<2xbf16>, tensor<2xf16>
}
