"""Patterns of simplify_algebra on single pointwise ops: units, zeros, canonical constants."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, is_a
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Div, Max, Min, Mul, Pow, Sub
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.dialects.migraphx.pointwise_unary import Exp, Log, Recip, Sqrt
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, QuantizeLinear
from mgx_mlir.dialects.migraphx.reduce import ReduceMean, ReduceSum
from mgx_mlir.dialects.migraphx.require import Require
from mgx_mlir.passes.analysis.constants import is_constant, is_splat, splat
from mgx_mlir.passes.analysis.rounding import (
    exact_reciprocal,
    feeds_steps,
    is_rounded,
    may_add,
    normal_reciprocal,
)
from mgx_mlir.passes.analysis.view_chains import trace
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)


def sides(op: ir.Operation) -> tuple[tuple[ir.Value, ir.Value], ...]:
    """Return both ways to see a commutative op as (operand, other operand)."""
    a, b = op.operands
    return (a, b), (b, a)


@pattern(Mul, Div, Add, Sub, Max, Min, benefit=4)
def find_unit_ops(op: Op, rw: Rewriter) -> Replacement:
    """x * 1, x / 1, x + 0, x - 0, max(x, the least integer), min(x, the largest) -> x"""
    unit: float = 1 if is_a(op, (Mul, Div)) else 0
    if is_a(op, (Max, Min)):
        dtype = rw.dtype(op.operands[0])
        if not dtype.is_integer or dtype.is_bool:
            return no_match("the order of NaN and -0 matters")
        unit = dtype.lowest() if is_a(op, Max) else dtype.highest()
    for x, c in sides(op)[:1] if is_a(op, (Div, Sub)) else sides(op):
        if is_splat(c, unit):
            return x
    return no_match("no operand is {}", unit)


@pattern(Where, benefit=4)
def find_where_const(op: Where, rw: Rewriter) -> Replacement:
    """select: where(true, a, b) -> a, where(false, a, b) -> b"""
    condition, a, b = op.operands
    found = splat(condition)
    if found is None:
        return no_match("the condition is not one constant")
    chosen = a if found else b
    if chosen.type != op.results[0].type:
        return no_match("the choice has another type than the result")
    return chosen


@pattern(Require, benefit=4)
def find_met_require(op: Require, rw: Rewriter) -> Replacement:
    """require(x, true) -> x"""
    met = rw.const(op.condition)
    if met is None or not met.all():
        return no_match("the condition is not known to hold")
    return op.input


@pattern(Mul, Div, Sub, benefit=3)
def find_neg_unit_ops(op: Mul | Div | Sub, rw: Rewriter) -> Replacement:
    """x * -1, x / -1, 0 - x -> -x"""
    a, b = op.operands
    dtype = rw.dtype(a)
    if not (dtype.is_float or dtype.is_signed):
        return no_match("{} has no negative numbers", dtype)
    if is_a(op, Sub):
        return rw.op("neg", b) if is_splat(a, 0) else no_match("the first operand is not 0")
    for x, c in sides(op) if is_a(op, Mul) else ((a, b),):
        if is_splat(c, -1):
            return rw.op("neg", x)
    return no_match("no operand is -1")


@pattern(Mul, Div, benefit=3)
def find_zero_ops(op: Mul | Div, rw: Rewriter) -> Replacement:
    """x * 0, 0 / x -> 0"""
    # inf and NaN times 0 are not 0, so that floats need leave
    if rw.dtype(op.operands[0]).is_float and not rw.options.fast_math:
        return no_match("0 times a float may be NaN (fast-math ignores that)")
    if is_a(op, Div):
        zero = op.operands[0] if is_splat(op.operands[0], 0) else None
    else:
        zero = next((c for c in op.operands if is_splat(c, 0)), None)
    return no_match("no operand is 0") if zero is None else zero


@pattern(Sub)
def find_sub_const(op: Sub, rw: Rewriter) -> Replacement:
    """x - c -> x + (-c)"""
    x, c = op.operands
    dtype = rw.dtype(x)
    if not (dtype.is_float or dtype.is_signed):
        return no_match("{} has no negative numbers", dtype)
    if is_constant(x) or not is_constant(c):
        return no_match("the second operand is not the one constant")
    return rw.op("add", x, rw.op("neg", c))


@pattern(Div)
def find_div_const(op: Div, rw: Rewriter) -> Replacement:
    """x / c -> x * (1 / c) for floats, where 1 / c is exact (every c a power of two), or fast-math

    Never where 1 / c is not a normal number, nor where a discontinuous op may read the result: the
    last bit of x / 41 can change its floor.
    """
    x, c = op.operands
    dtype = rw.dtype(x)
    if not dtype.is_float:
        return no_match("{} has no reciprocal", dtype)
    if is_constant(x) or not is_constant(c):
        return no_match("the second operand is not the one constant")
    if not exact_reciprocal(c, dtype):
        if not rw.options.fast_math:
            return no_match("1 / c is rounded (fast-math allows that)")
        if not normal_reciprocal(c, dtype):
            return no_match("1 / c is not known to be a normal number")
        if feeds_steps(op.result):
            return no_match("a discontinuous op may read the last bit of the quotient")
    return rw.op("mul", x, rw.op("recip", c))


@pattern(Recip, benefit=2)
def find_rsqrt(op: Recip, rw: Rewriter) -> Replacement:
    """1 / sqrt(x) -> rsqrt(x)"""
    root = rw.defining(op.operands[0], Sqrt)
    if root is None:
        return no_match("input is not a sqrt")
    return rw.op("rsqrt", root.operands[0])


@pattern(Div, benefit=2)
def find_recip(op: Div, rw: Rewriter) -> Replacement:
    """1 / x -> recip(x) for floats"""
    a, b = op.operands
    if not rw.dtype(a).is_float:
        return no_match("{} has no reciprocal", rw.dtype(a))
    if is_splat(a, 1):
        return rw.op("recip", b)
    return no_match("the first operand is not 1")


@pattern(Log)
def find_log_exp(op: Log, rw: Rewriter) -> Replacement:
    """log(exp(x)) -> x (fast-math: it is finite where exp(x) overflows)"""
    if not rw.options.fast_math:
        return no_match("results that overflowed become finite (fast-math allows that)")
    inner = rw.defining(op.operands[0], Exp)
    return no_match("input is not an exp") if inner is None else inner.operands[0]


@pattern(Log)
def find_log_div(op: Log, rw: Rewriter) -> Replacement:
    """log(exp(x) / y) -> x - log(y), y an exp or a sum of them (fast-math)

    The logarithm of a softmax. Where exp(x) is too large or small for its type the result is
    finite, and was not: hence fast-math.
    """
    if not rw.options.fast_math:
        return no_match("results that overflowed become finite (fast-math allows that)")
    ratio = defined_by(op.operands[0], Div)
    if ratio is None:
        return no_match("input is not a quotient")
    exp = defined_by(ratio.operands[0], Exp)
    if exp is None:
        return no_match("the numerator is not an exp")
    y = ratio.operands[1]
    found = trace(y)
    total = y if found is None else found[0]
    reduced = defined_by(total, ReduceSum, ReduceMean)
    if reduced is not None:
        total = reduced.operands[0]
    if defined_by(total, Exp) is None:
        return no_match("the denominator is neither an exp nor a sum of them")
    rw.merge_location(ratio, exp)
    return rw.op("sub", exp.operands[0], rw.op("log", y))


@pattern(QuantizeLinear, DequantizeLinear)
def eliminate_zero_point(op: QuantizeLinear | DequantizeLinear, rw: Rewriter) -> Replacement:
    """quantizelinear(x, s, 0) -> quantizelinear(x, s), and of dequantizelinear"""
    if op.zero_point is None:
        return no_match("it has no zero point")
    if not is_splat(op.zero_point, 0):
        return no_match("the zero point is not 0 everywhere")
    x, scale = op.operands[0], op.operands[1]
    if is_a(op, DequantizeLinear):
        return rw.op("dequantizelinear", x, scale)
    return rw.op("quantizelinear", x, scale, out_type=rw.dtype(op.results[0]))


@pattern(Pow, benefit=2)
def find_pow2(op: Pow, rw: Rewriter) -> Replacement:
    """pow(x, 2) -> x * x"""
    x, e = op.operands
    return rw.op("mul", x, x) if is_splat(e, 2) else no_match("the exponent is not 2")


@pattern(Pow)
def find_pow_const(op: Pow, rw: Rewriter) -> Replacement:
    """pow(x, n) -> products of x for n = 1, 3, 4, and recip(x) for n = -1"""
    x, e = op.operands
    n = splat(e)
    if n is None or n not in (-1, 1, 3, 4):
        return no_match("the exponent is {}", "not one number" if n is None else n)
    if n == 1:
        return x
    if n == -1:
        return rw.op("recip", x) if rw.dtype(x).is_float else no_match("integers have no recip")
    square = rw.op("mul", x, x)
    return rw.op("mul", square, x if n == 3 else square)


@pattern(Add, benefit=2)
def find_double_add_lit_broadcast(op: Add, rw: Rewriter) -> Replacement:
    """(x + a) + (y + b) -> (x + y) + (a + b), a and b constant"""
    left, right = (_plus_constant(v) for v in op.operands)
    if left is None or right is None:
        return no_match("the operands are not both sums with a constant")
    if not (is_rounded(left[0]) and is_rounded(right[0])):
        return no_match("x + a may be more exact than x + y")
    if not may_add(left[0], left[1], right[1]):
        return no_match("a + b is not known, or far smaller than they are")
    for v in op.operands:
        rw.merge_location(v.owner)
    return rw.op("add", rw.op("add", left[0], right[0]), rw.op("add", left[1], right[1]))


@pattern(Add)
def find_add_lit_broadcast(op: Add, rw: Rewriter) -> Replacement:
    """(x + a) + b -> x + (a + b), a and b constant

    Only where a + b is exact, or x is rounded, and never where a and b cancel.
    """
    reason = no_match("no operand is a sum with a constant, the other constant")
    for v, b in sides(op):
        # the cheaper test first, as most operands are not sums
        if defined_by(v, Add) is None or not is_constant(b):
            continue
        if (found := _plus_constant(v)) is not None:
            x, a = found
            if may_add(x, a, b):
                rw.merge_location(v.owner)
                return rw.op("add", x, rw.op("add", a, b))
            reason = no_match("a + b is not known yet, or less exact than (x + a) + b")
    return reason


def _plus_constant(value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """Return (x, c) where `value` is x + c with c constant and x not, and nothing else uses it.

    With another user both x and x + c would have to be kept.
    """
    inner = defined_by(value, Add)
    if inner is None or not has_one_use(value):
        return None
    for x, c in sides(inner):
        if is_constant(c) and not is_constant(x):
            return x, c
    return None


@pattern(Max, Min)
def find_idempotent(op: Max | Min, rw: Rewriter) -> Replacement:
    """max(x, x) -> x"""
    if op.a != op.b:
        return no_match("two different operands")
    return op.a
