"""Smooth functions that are accurate near 0 and in their tails, and sums of 16-bit floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.frontends.helpers import compare, convert, wide
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def widened(b: Builder, x: Value, function: Callable[[Value], Value]) -> Value:
    """Return `function` in f32 for 16-bit floats, whose steps would round."""
    dtype = b.dtype(x)
    return convert(b, function(convert(b, x, wide(dtype))), dtype)


def wide_sum(b: Builder, terms: Sequence[Value]) -> Value:
    """Return the sum of terms, in order, in f32 for 16-bit floats."""
    first, *rest = (convert(b, t, wide(b.dtype(t))) for t in terms)
    for term in rest:
        first = b.add(first, term)
    return first


def log1p(b: Builder, x: Value) -> Value:
    """Return log(1 + x) = 2 atanh(x / (2 + x)), accurate near 0."""
    return b.where(compare(b, "less", b.abs(x), 0.5), _log1p_near(b, x), b.log(b.add(x, 1)))


def _log1p_near(b: Builder, x: Value) -> Value:
    return b.mul(b.atanh(b.div(x, b.add(x, 2))), 2)


def expm1(b: Builder, x: Value) -> Value:
    """Return exp(x) - 1 = 2 sinh(x / 2) exp(x / 2), accurate near 0."""
    half = b.mul(x, 0.5)
    near = b.mul(b.mul(b.sinh(half), b.exp(half)), 2)
    return b.where(compare(b, "less", b.abs(x), 1), near, b.sub(b.exp(x), 1))


def softplus(b: Builder, x: Value) -> Value:
    """Return log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), which never overflows."""
    return b.add(b.max(x, 0), _log1p_near(b, b.exp(b.neg(b.abs(x)))))


def mish(b: Builder, x: Value) -> Value:
    """Return x tanh(log(1 + exp(x))) = x n / (n + 2), n = exp(x) (exp(x) + 2).

    From x = 20 on, the quotient is 1 even in f64; clipped there, n does not overflow f32.
    """
    power = b.exp(b.min(x, 20))
    n = b.mul(power, b.add(power, 2))
    return b.mul(x, b.div(n, b.add(n, 2)))
