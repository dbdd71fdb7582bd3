// RUN: mgx-opt %s --mgx-fuse-attention=flash=true --split-input-file | filecheck %s

// The kernel reads what was widened, and keeps the scores in f32.
// CHECK-LABEL: @widened
// CHECK-NOT: migraphx.convert
// CHECK: %[[K:.*]] = "migraphx.group"
// CHECK: %[[T:.*]] = "migraphx.transpose"{{.*}} -> tensor<2x8x6xf16>
// CHECK-NEXT: %[[S:.*]] = "migraphx.dot"({{.*}}, %[[T]]) : (tensor<2x16x8xf16>, tensor<2x8x6xf16>) -> tensor<2x16x6xf16>
// CHECK-NEXT: %[[W:.*]] = "migraphx.convert"(%[[S]]) {{.*}} -> tensor<2x16x6xf32>
// CHECK-NEXT: %[[P:.*]] = "migraphx.softmax"(%[[W]]) {{.*}} -> tensor<2x16x6xf32>
// CHECK-NEXT: %[[N:.*]] = "migraphx.convert"(%[[P]]) {{.*}} -> tensor<2x16x6xf16>
// CHECK-NEXT: "migraphx.dot"(%[[N]], {{.*}}) : (tensor<2x16x6xf16>, tensor<2x6x3xf16>) -> tensor<2x16x3xf16>
// CHECK: return %[[K]]
func.func @widened(%q: tensor<2x16x8xf16>, %k: tensor<2x6x8xf16>, %v: tensor<2x6x3xf16>) -> tensor<2x16x3xf16> {
  %qw = "migraphx.convert"(%q) {target_type = f32} : (tensor<2x16x8xf16>) -> tensor<2x16x8xf32>
  %kw = "migraphx.convert"(%k) {target_type = f32} : (tensor<2x6x8xf16>) -> tensor<2x6x8xf32>
  %vw = "migraphx.convert"(%v) {target_type = f32} : (tensor<2x6x3xf16>) -> tensor<2x6x3xf32>
  %t = "migraphx.transpose"(%kw) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%qw, %t) : (tensor<2x16x8xf32>, tensor<2x8x6xf32>) -> tensor<2x16x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x16x6xf32>) -> tensor<2x16x6xf32>
  %o = "migraphx.dot"(%p, %vw) : (tensor<2x16x6xf32>, tensor<2x6x3xf32>) -> tensor<2x16x3xf32>
  %y = "migraphx.convert"(%o) {target_type = f16} : (tensor<2x16x3xf32>) -> tensor<2x16x3xf16>
  return %y : tensor<2x16x3xf16>
}

// -----

// Near misses. Values of f32.
// CHECK-LABEL: @values
// CHECK: }) {tag = "attention"} {{.*}} -> tensor<2x16x3xf32>
// CHECK-NEXT: migraphx.convert
func.func @values(%q: tensor<2x16x8xf16>, %k: tensor<2x6x8xf16>, %v: tensor<2x6x3xf32>) -> tensor<2x16x3xf16> {
  %qw = "migraphx.convert"(%q) {target_type = f32} : (tensor<2x16x8xf16>) -> tensor<2x16x8xf32>
  %kw = "migraphx.convert"(%k) {target_type = f32} : (tensor<2x6x8xf16>) -> tensor<2x6x8xf32>
  %t = "migraphx.transpose"(%kw) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%qw, %t) : (tensor<2x16x8xf32>, tensor<2x8x6xf32>) -> tensor<2x16x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x16x6xf32>) -> tensor<2x16x6xf32>
  %o = "migraphx.dot"(%p, %v) : (tensor<2x16x6xf32>, tensor<2x6x3xf32>) -> tensor<2x16x3xf32>
  %y = "migraphx.convert"(%o) {target_type = f16} : (tensor<2x16x3xf32>) -> tensor<2x16x3xf16>
  return %y : tensor<2x16x3xf16>
}

// -----

// Fewer queries than a tile has: the kernel may be taken apart, with scores of 16 bits in memory. It
// rounds its result alone.
// CHECK-LABEL: @few
// CHECK: migraphx.group
// CHECK: "migraphx.dot"{{.*}} -> tensor<2x15x6xf32>
// CHECK: %[[O:.*]] = "migraphx.dot"{{.*}} -> tensor<2x15x3xf32>
// CHECK-NEXT: %[[H:.*]] = "migraphx.convert"(%[[O]]) {{.*}} -> tensor<2x15x3xf16>
// CHECK-NEXT: "migraphx.yield"(%[[H]])
// CHECK-NEXT: }) {tag = "attention"}
// CHECK-NEXT: return
func.func @few(%q: tensor<2x15x8xf16>, %k: tensor<2x6x8xf16>, %v: tensor<2x6x3xf16>) -> tensor<2x15x3xf16> {
  %qw = "migraphx.convert"(%q) {target_type = f32} : (tensor<2x15x8xf16>) -> tensor<2x15x8xf32>
  %kw = "migraphx.convert"(%k) {target_type = f32} : (tensor<2x6x8xf16>) -> tensor<2x6x8xf32>
  %vw = "migraphx.convert"(%v) {target_type = f32} : (tensor<2x6x3xf16>) -> tensor<2x6x3xf32>
  %t = "migraphx.transpose"(%kw) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%qw, %t) : (tensor<2x15x8xf32>, tensor<2x8x6xf32>) -> tensor<2x15x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x15x6xf32>) -> tensor<2x15x6xf32>
  %o = "migraphx.dot"(%p, %vw) : (tensor<2x15x6xf32>, tensor<2x6x3xf32>) -> tensor<2x15x3xf32>
  %y = "migraphx.convert"(%o) {target_type = f16} : (tensor<2x15x3xf32>) -> tensor<2x15x3xf16>
  return %y : tensor<2x15x3xf16>
}

// -----

// Rows that are masked whole are zeros behind the kernel.
// CHECK-LABEL: @guarded
// CHECK: "migraphx.dot"{{.*}} -> tensor<2x16x6xf16>
// CHECK: }) {tag = "attention"} {{.*}} -> tensor<2x16x3xf16>
// CHECK: %[[Z:.*]] = "migraphx.where"({{.*}}) : (tensor<2x16x3xi1>, tensor<2x16x3xf16>, tensor<2x16x3xf16>)
// CHECK-NEXT: return %[[Z]]
func.func @guarded(%q: tensor<2x16x8xf16>, %k: tensor<2x6x8xf16>, %v: tensor<2x6x3xf16>, %c: tensor<2x16x3xi1>) -> tensor<2x16x3xf16> {
  %zero = "migraphx.literal"() {value = dense<0.0> : tensor<2x16x3xf32>} : () -> tensor<2x16x3xf32>
  %qw = "migraphx.convert"(%q) {target_type = f32} : (tensor<2x16x8xf16>) -> tensor<2x16x8xf32>
  %kw = "migraphx.convert"(%k) {target_type = f32} : (tensor<2x6x8xf16>) -> tensor<2x6x8xf32>
  %vw = "migraphx.convert"(%v) {target_type = f32} : (tensor<2x6x3xf16>) -> tensor<2x6x3xf32>
  %t = "migraphx.transpose"(%kw) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%qw, %t) : (tensor<2x16x8xf32>, tensor<2x8x6xf32>) -> tensor<2x16x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x16x6xf32>) -> tensor<2x16x6xf32>
  %o = "migraphx.dot"(%p, %vw) : (tensor<2x16x6xf32>, tensor<2x6x3xf32>) -> tensor<2x16x3xf32>
  %w = "migraphx.where"(%c, %zero, %o) : (tensor<2x16x3xi1>, tensor<2x16x3xf32>, tensor<2x16x3xf32>) -> tensor<2x16x3xf32>
  %y = "migraphx.convert"(%w) {target_type = f16} : (tensor<2x16x3xf32>) -> tensor<2x16x3xf16>
  return %y : tensor<2x16x3xf16>
}

// -----

// Operands of one type, the result in another.
// CHECK-LABEL: @result
// CHECK: }) {tag = "attention"} {{.*}} -> tensor<2x16x3xf32>
// CHECK-NEXT: migraphx.convert
func.func @result(%q: tensor<2x16x8xf16>, %k: tensor<2x6x8xf16>, %v: tensor<2x6x3xf16>) -> tensor<2x16x3xbf16> {
  %qw = "migraphx.convert"(%q) {target_type = f32} : (tensor<2x16x8xf16>) -> tensor<2x16x8xf32>
  %kw = "migraphx.convert"(%k) {target_type = f32} : (tensor<2x6x8xf16>) -> tensor<2x6x8xf32>
  %vw = "migraphx.convert"(%v) {target_type = f32} : (tensor<2x6x3xf16>) -> tensor<2x6x3xf32>
  %t = "migraphx.transpose"(%kw) {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %s = "migraphx.dot"(%qw, %t) : (tensor<2x16x8xf32>, tensor<2x8x6xf32>) -> tensor<2x16x6xf32>
  %p = "migraphx.softmax"(%s) {axis = 2 : i64} : (tensor<2x16x6xf32>) -> tensor<2x16x6xf32>
  %o = "migraphx.dot"(%p, %vw) : (tensor<2x16x6xf32>, tensor<2x6x3xf32>) -> tensor<2x16x3xf32>
  %y = "migraphx.convert"(%o) {target_type = bf16} : (tensor<2x16x3xf32>) -> tensor<2x16x3xbf16>
  return %y : tensor<2x16x3xbf16>
}
