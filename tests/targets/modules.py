"""Small linalg modules as text, for the tests of the targets."""

from __future__ import annotations


def add(n: int = 32) -> str:
    """y = x + x over n floats."""
    return f"""func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %e = tensor.empty() : tensor<{n}xf32>
  %r = linalg.map {{ arith.addf }} ins(%x, %x : tensor<{n}xf32>, tensor<{n}xf32>)
    outs(%e : tensor<{n}xf32>)
  return %r : tensor<{n}xf32>
}}
"""


# log10 does not link on llvm-cpu; the location is what a frontend would give
LOG10 = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.map { math.log10 } ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>)
    loc("the_log"("model.onnx":12:0))
  return %r : tensor<4x8xf32>
}
"""

# a foreign op that is parsed, then crashes the compiler
FOREIGN = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "migraphx.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""

UNKNOWN = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "linalg.nope"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("node_7"("model.onnx":7:0))
  return %r : tensor<4xf32>
}
"""


def matmul_softmax(n: int = 64) -> str:
    """softmax(a @ w) with w a parameter, in two dispatch regions, as the lowering makes them."""
    t = f"tensor<{n}x{n}xf32>"
    return f"""
ml_program.global private @w(#flow.parameter.named<"model"::"w"> : {t}) : {t}
func.func @main(%a: {t}) -> {t} {{
  %w = ml_program.global_load_const @w : {t}
  %m = "flow.dispatch.region"() ({{
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : {t}
    %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}
    %r = linalg.matmul ins(%a, %w : {t}, {t}) outs(%f : {t}) -> {t}
    "flow.return"(%r) : ({t}) -> ()
  }}, {{}}) {{operandSegmentSizes = array<i32: 0, 0>}} : () -> {t}
  %s = "flow.dispatch.region"() ({{
    %e = tensor.empty() : {t}
    %r = linalg.softmax dimension(1) ins(%m : {t}) outs(%e : {t}) -> {t}
    "flow.return"(%r) : ({t}) -> ()
  }}, {{}}) {{operandSegmentSizes = array<i32: 0, 0>}} : () -> {t}
  return %s : {t}
}}
"""
