"""rewrite_gelu: GELU by one exponential instead of erf or tanh."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.pointwise_base import Unary
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Div, Mul, Pow, Sub
from mgx_mlir.dialects.migraphx.pointwise_trig import Tanh
from mgx_mlir.dialects.migraphx.pointwise_unary import Erf
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    Pattern,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

_DEPTH = 6  # most nested ops of a product or a polynomial
_INSIDE = (Mul, Div, Add)
_NEAR = 1e-3  # models round the constants of GELU to four digits and to 16 bits


@pattern(Mul, Div)
def find_gelu_erf(op: Mul | Div, rw: Rewriter) -> Replacement:
    """x / 2 * (1 + erf(x / sqrt(2))) -> x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3)))

    Only in 16 bits with fast math: the two differ by up to 5e-4, half an ulp of f16 at 1. An f32
    that is only converted to 16 bits counts too.
    """
    if not rw.options.fast_math:
        return no_match("it is an approximation (fast-math is off)")
    found = _half_times_one_plus(op, Erf)
    if found is None:
        return no_match("it is not x / 2 * (1 + erf(y))")
    if not _rounds_to_16_bits(op.result):
        return no_match("{} is not a 16-bit float", TensorType.of(op.result).dtype)
    x, y = found
    scale, factors = product_of(y)
    if factors != [x] or not math.isclose(scale, math.sqrt(0.5), rel_tol=_NEAR):
        return no_match("the argument of erf is not x / sqrt(2)")
    c = -2 * math.sqrt(2 / math.pi)
    inner = rw.mul(x, rw.add(rw.mul(rw.op("mul", x, x), c * 0.044715), c))
    return rw.op("div", x, rw.add(rw.op("exp", inner), 1))


@pattern(Mul, Div)
def find_tanh_fast_gelu(op: Mul | Div, rw: Rewriter) -> Replacement:
    """x / 2 * (1 + tanh(y)) -> x / (1 + exp(-2 y)), y a polynomial in x

    Equal for every y. As y has no other operand, both are infinite or NaN for the same x.
    """
    found = _half_times_one_plus(op, Tanh)
    if found is None:
        return no_match("it is not x / 2 * (1 + tanh(y))")
    x, y = found
    if splat(y) is not None or not _is_polynomial(y, x, _DEPTH):
        return no_match("the argument of tanh is not a polynomial in x")
    return rw.op("div", x, rw.add(rw.op("exp", rw.mul(y, -2)), 1))


def product_of(v: ir.Value, depth: int = _DEPTH) -> tuple[float, list[ir.Value]]:
    """Return `v` as a number times the values that products and quotients multiply.

    Values with other readers are not decomposed, except `v` itself.
    """
    number = splat(v)
    if number is not None:
        return float(number), []
    op = defined_by(v, Mul, Div) if depth else None
    if op is None or (depth < _DEPTH and not has_one_use(v)):
        return 1.0, [v]
    if is_a(op, Div):
        number = splat(op.operands[1])
        if number is None or not number:
            return 1.0, [v]
        scale, factors = product_of(op.operands[0], depth - 1)
        return scale / float(number), factors
    (a, left), (b, right) = (product_of(x, depth - 1) for x in op.operands)
    return a * b, left + right


def _half_times_one_plus(op: Op, function: type[Unary]) -> tuple[ir.Value, ir.Value] | None:
    """Return (x, y) where the root is x / 2 * (1 + function(y)), multiplied in any order.

    The sum and the function must have no other reader: they would be computed all the same.
    """
    if not _contains(op, function, _DEPTH):
        return None
    scale, factors = product_of(op.result)
    if len(factors) != 2:
        return None
    for x, other in (factors, factors[::-1]):
        total = defined_by(other, Add)
        if total is None or not has_one_use(other):
            continue
        for term, one in (total.operands, list(total.operands)[::-1]):
            number = splat(one)
            # (1 + f) / 2 may be written f / 2 + 1 / 2
            inner, found = product_of(term)
            if number is None or len(found) != 1 or inner != float(number):
                continue
            f = defined_by(found[0], function)
            if f is not None and has_one_use(found[0]) and scale * inner == 0.5:
                return x, f.input
    return None


def _rounds_to_16_bits(v: ir.Value) -> bool:
    """Say whether `v` is a 16-bit float, or a float that every reader converts to one."""
    uses = list(v.uses)
    readers = [u.owner.results[0] for u in uses if is_a(u.owner, Convert)]
    kinds = [TensorType.of(r).dtype for r in (readers if len(readers) == len(uses) else [])] or [
        TensorType.of(v).dtype
    ]
    return all(t.is_float and t.size == 2 for t in kinds)


def _contains(op: ir.Operation, kind: type[Op], depth: int) -> bool:
    """Return whether the products and sums that lead to `op` contain an op of this kind."""
    owners = [v.owner for v in op.operands]
    return any(
        is_a(o, kind) or (depth > 0 and is_a(o, _INSIDE) and _contains(o, kind, depth - 1))
        for o in owners
    )


def _is_polynomial(y: ir.Value, x: ir.Value, depth: int) -> bool:
    """Return whether `y` is a polynomial in `x` with constant coefficients."""
    if y == x or splat(y) is not None:
        return True
    op = defined_by(y, Add, Sub, Mul, Pow) if depth else None
    if op is None:
        return False
    a, b = op.operands
    if is_a(op, Pow):
        exponent = splat(b)
        return exponent is not None and exponent >= 1 and _is_polynomial(a, x, depth - 1)
    return _is_polynomial(a, x, depth - 1) and _is_polynomial(b, x, depth - 1)


@dataclass(frozen=True)
class RewriteGelu(PatternPass):
    """GELU in tanh form, and with fast math 16-bit GELU with erf, by one exponential."""

    name: ClassVar[str] = "rewrite_gelu"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_gelu_erf, find_tanh_fast_gelu)
    fast_math: bool = option(False, "also approximate erf in 16 bits")
