"""Sizes that are numbers where they are known now and 0-d i64 tensors where they are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.frontends.helpers import convert, unsqueeze
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

Size = int | Value  # or a 0-d i64 tensor


def known(b: Builder, v: Value) -> Size:
    """Return an integer scalar as a size."""
    found = b.const(v)
    return convert(b, v, INT64) if found is None else int(found.reshape(-1)[0])


def as_scalar(b: Builder, size: Size) -> Value:
    """Return a size as a 0-d i64 tensor."""
    return b.literal(size, INT64) if isinstance(size, int) else size


def _either(b: Builder, x: Size, y: Size, name: str, numbers: Callable[[int, int], int]) -> Size:
    if isinstance(x, int) and isinstance(y, int):
        return numbers(x, y)
    return getattr(b, name)(as_scalar(b, x), as_scalar(b, y))


def plus(b: Builder, x: Size, y: Size) -> Size:
    """Return x + y, a number where both are known."""
    return _either(b, x, y, "add", lambda p, q: p + q)


def minus(b: Builder, x: Size, y: Size) -> Size:
    """Return x - y, a number where both are known."""
    return _either(b, x, y, "sub", lambda p, q: p - q)


def times(b: Builder, x: Size, y: Size) -> Size:
    """Return x * y, a number where both are known."""
    return _either(b, x, y, "mul", lambda p, q: p * q)


def over(b: Builder, x: Size, y: Size) -> Size:
    """Return the quotient of sizes that are not negative, rounded down."""
    return _either(b, x, y, "div", lambda p, q: p // q)


def least(b: Builder, x: Size, y: Size) -> Size:
    """Return the smaller of x and y, a number where both are known."""
    return _either(b, x, y, "min", min)


def reshape_to_sizes(b: Builder, x: Value, sizes: Sequence[Size]) -> Value:
    """Return `x` with dims that are sizes, of which one number may be -1: what is left."""
    if all(isinstance(d, int) for d in sizes):
        return b.reshape(x, dims=list(sizes))
    parts = [unsqueeze(b, as_scalar(b, d), [0]) for d in sizes]
    # beside a -1 an extent of 0 is the input's, which leaves it something to be
    exact = not any(isinstance(d, int) and d == -1 for d in sizes)
    return b.reshape(x, b.concat(parts, axis=0), allowzero=exact or None)
