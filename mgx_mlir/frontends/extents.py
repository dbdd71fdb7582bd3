"""Extents: numbers if known, else 0-d i64 tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, TensorType, show_dims
from mgx_mlir.frontends.helpers import (
    compare,
    concat,
    convert,
    extent,
    known_extent,
    require,
    reshape,
    unsqueeze,
)
from mgx_mlir.frontends.runtime_axes import element
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

Extent = int | Value  # a number or a 0-d i64 tensor
MOST_ELEMENTS = 4096  # most elements of a run-time vector that is split into scalars


def extents(b: Builder, x: Value) -> list[Extent]:
    """Return the extents of `x`."""
    return [d if d != DYN else extent(b, x, i) for i, d in enumerate(b.dims(x))]


def elements(b: Builder, v: Value, count: int | None = None) -> list[Extent]:
    """Return the elements of a vector of integers, each known or not."""
    if count is not None and b.dims(v) == (DYN,):
        v = known_extent(b, v, 0, count, "a vector")
    dims = b.dims(v)
    if len(dims) > 1 or DYN in dims or (count is not None and (dims or (1,))[0] != count):
        wanted = "a vector of known length" if count is None else f"{count} numbers"
        raise ModelError(f"expected {wanted}, got dims {show_dims(dims)}")
    known = b.const(v)
    if known is not None:
        return [int(i) for i in known.reshape(-1)]
    if dims and dims[0] > MOST_ELEMENTS:
        raise ModelError(f"expected at most {MOST_ELEMENTS} numbers, got {dims[0]}")
    out: list[Extent] = []
    for i in range(dims[0] if dims else 1):
        found = element(b, v, i)
        value = b.const(found)
        out.append(found if value is None else int(value.reshape(())))
    return out


def known(b: Builder, v: Value) -> Extent:
    """Return an integer scalar as an extent."""
    found = b.const(v)
    return convert(b, v, INT64) if found is None else int(found.reshape(-1)[0])


def _either(
    b: Builder, a: Extent, c: Extent, name: str, numbers: Callable[[int, int], int]
) -> Extent:
    if isinstance(a, int) and isinstance(c, int):
        return numbers(a, c)
    return getattr(b, name)(scalar(b, a), scalar(b, c))


def plus(b: Builder, a: Extent, c: Extent) -> Extent:
    """Return a + c, a number where both are known."""
    return _either(b, a, c, "add", operator.add)


def minus(b: Builder, a: Extent, c: Extent) -> Extent:
    """Return a - c, a number where both are known."""
    return _either(b, a, c, "sub", operator.sub)


def times(b: Builder, a: Extent, c: Extent) -> Extent:
    """Return a * c, a number where both are known."""
    return _either(b, a, c, "mul", operator.mul)


def product(b: Builder, parts: Sequence[Extent]) -> Extent:
    """Return the product of extents, a number where all are known."""
    total: Extent = 1
    for p in parts:
        total = times(b, total, p)
    return total


def least(b: Builder, a: Extent, c: Extent) -> Extent:
    """Return the smaller of a and c, a number where both are known."""
    return _either(b, a, c, "min", min)


def quotient(b: Builder, a: Extent, c: Extent) -> Extent:
    """Return a / c rounded down; neither is negative."""
    return _either(b, a, c, "div", operator.floordiv)


def exact_quotient(b: Builder, a: Extent, c: int) -> Extent:
    """Return a / c; c must divide a.

    A remainder of known numbers is a ModelError. For a dynamic extent, the reshape that the caller
    builds with the quotient fails.
    """
    if isinstance(a, int) and a % c:
        raise ModelError(f"{c} does not divide an extent of {a}")
    return quotient(b, a, c)


def scalar(b: Builder, a: Extent) -> Value:
    """Return an extent as a 0-d i64 tensor."""
    return b.literal(a, INT64) if isinstance(a, int) else convert(b, a, INT64)


def vector(b: Builder, parts: Sequence[Extent]) -> Value:
    """Return a 1-D i64 tensor of extents."""
    known = [p for p in parts if isinstance(p, int)]
    if len(known) == len(parts):
        return b.ints(known)
    return concat(b, [unsqueeze(b, scalar(b, p), [0]) for p in parts], 0)


def reshaped(b: Builder, x: Value, parts: Sequence[Extent]) -> Value:
    """Return `x` with other extents, static as far as they are known."""
    dims = [p if isinstance(p, int) else DYN for p in parts]
    if dims.count(DYN) > 1 or 0 in dims:  # an extent of 0 in a reshape would copy the input's
        kind = TensorType(b.dtype(x), tuple(dims))
        return b.reshape(x, vector(b, parts), allowzero=True, results=[kind])
    return reshape(b, x, [-1 if d == DYN else d for d in dims])


def divided(
    b: Builder, x: Value, count: int, parts: str, whole: str, *, inner: bool = False
) -> Value:
    """Return `x` with the last axis as {count, extent / count}; the other way round with `inner`.

    parts, whole: their names in messages. Errors: ModelError if the count does not divide a known
    extent; a dynamic extent fails in the run.
    """
    *lead, size = extents(b, x)
    if count < 1 or (isinstance(size, int) and size % count):
        raise ModelError(f"{count} {parts} do not divide {whole} {b.dims(x)[-1]}")
    if isinstance(size, int):
        split = [count, size // count]
        if size:  # 0 copies an extent, which keeps facts about dynamic ones
            return b.reshape(x, dims=[*[0] * len(lead), *(split[::-1] if inner else split)])
    else:
        fits = compare(b, "equal", b.mod(size, count), 0)
        size = require(b, size, fits, f"{whole} that {count} {parts} divide")
        split = [count, b.div(size, count)]
    return reshaped(b, x, [*lead, *(split[::-1] if inner else split)])


def spread(b: Builder, x: Value, parts: Sequence[Extent]) -> Value:
    """Return `x` broadcast to extents of the same rank."""
    known = [p for p in parts if isinstance(p, int)]
    if len(known) == len(parts):
        return b.multibroadcast(x, known)
    kind = TensorType(b.dtype(x), tuple(p if isinstance(p, int) else DYN for p in parts))
    return b.broadcast_with_dims(x, vector(b, parts), results=[kind])


def filled(b: Builder, parts: Sequence[Extent], value: Value) -> Value:
    """Return a 0-d tensor broadcast to extents."""
    known = [p for p in parts if isinstance(p, int)]
    if len(known) == len(parts):
        if any(p < 0 for p in known):
            raise ModelError(f"dims {known} have a negative extent")
        return b.multibroadcast(value, known)
    dims = tuple(p if isinstance(p, int) else DYN for p in parts)
    kind = TensorType(b.dtype(value), dims)
    return b.broadcast_with_dims(value, vector(b, parts), results=[kind])


def zeros_of(
    b: Builder, parts: Sequence[Extent], dtype: DType, value: float | np.number = 0
) -> Value:
    """Return a tensor of these extents filled with `value`."""
    return filled(b, parts, b.literal(np.array(value, dtype.np)))


def reshape_to_sizes(b: Builder, x: Value, sizes: Sequence[Extent]) -> Value:
    """Return `x` with other extents; one may be -1, which is inferred."""
    if all(isinstance(d, int) for d in sizes):
        return b.reshape(x, dims=list(sizes))
    parts = [unsqueeze(b, scalar(b, d), [0]) for d in sizes]
    # next to a -1, an extent of 0 copies the input's, so that the rest can be inferred
    exact = not any(isinstance(d, int) and d == -1 for d in sizes)
    return b.reshape(x, b.concat(parts, axis=0), allowzero=exact or None)
