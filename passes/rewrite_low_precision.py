"""rewrite_low_precision: reorder f16 arithmetic so that intermediate values do not overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.pointwise_binary import Div, Mul, Pow
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, has_one_use, no_match, pattern


@pattern(Div, Mul)
def find_pow2_div(op: Div | Mul, rw: Rewriter) -> Replacement:
    """x^2 / n in f16 -> (x / n) * x, n above 1

    x^2 is infinite in f16 from 256 on. n is one constant: x * (1 / n) counts as x / n.
    """
    t = TensorType.of(op.result)
    if t.dtype is not dtypes.HALF:
        return no_match("{} is not f16", t.dtype)
    divides = is_a(op, Div)
    a, b = op.operands
    for square, n in ((a, b),) if divides else ((a, b), (b, a)):
        number = splat(n)
        if number is None or not (abs(number) > 1 if divides else 0 < abs(number) < 1):
            continue
        x = _squared(rw, square)
        if x is not None:
            return rw.op("mul", rw.op(op.mnemonic, x, n), x)
    return no_match("it is not a square divided by a constant above 1")


def _squared(rw: Rewriter, v: ir.Value) -> ir.Value | None:
    """Return x where `v` is x * x or pow(x, 2) with a single reader."""
    inner = rw.defining(v, Mul, Pow) if has_one_use(v) else None
    if inner is None:
        return None
    x, y = inner.operands
    if is_a(inner, Pow):
        exponent = splat(y)
        return x if exponent is not None and exponent == 2 else None
    return x if x == y else None


@dataclass(frozen=True)
class RewriteLowPrecision(PatternPass):
    """Divide before multiplying where a square could overflow f16."""

    name: ClassVar[str] = "rewrite_low_precision"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_pow2_div,)
