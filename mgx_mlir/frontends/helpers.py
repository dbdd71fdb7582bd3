"""Building blocks that importers share: casts, axes, views that change nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import BOOL, INT64, DType
from mgx_mlir.core.errors import ModelError, ShapeError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.dialects.migraphx.scalar_math import finite_max
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def axis_in(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front; ModelError where it is outside of [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ModelError(f"{what} {axis} is out of range for rank {rank}")
    return axis % rank


def axes_in(axes: Sequence[int], rank: int) -> list[int]:
    """axis_in for each of `axes`, which must be distinct."""
    found = [axis_in(a, rank) for a in axes]
    if len(set(found)) != len(found):
        raise ModelError(f"axes {list(axes)} are not distinct")
    return found


def static_dims(b: Builder, x: Value, what: str) -> tuple[int, ...]:
    """Return the dims of `x`, which must be known now; NotSupported where they are not."""
    dims = b.dims(x)
    if DYN in dims:
        raise NotSupported(f"{what} of dynamic dims {show_dims(dims)}, expected static ones")
    return dims


def settled(b: Builder, v: Value) -> Value:
    """Return `v` as a literal if it is known."""
    known = b.const(v)
    return v if known is None else b.literal(known)


def convert(b: Builder, x: Value, dtype: DType) -> Value:
    """Return `x` in another element type; `x` itself if it has that type.

    Values too large for a float of 16 bits or more become infinite.
    """
    have = b.dtype(x)
    if have is dtype:
        return x
    fits = not dtype.is_float or dtype.size == 1 or _largest(have) <= _largest(dtype)
    return b.convert(x, target_type=dtype, overflow=None if fits else True)


def _largest(dtype: DType) -> float:
    return finite_max(dtype) if dtype.is_float else float(dtype.highest())


def number(b: Builder, value: float | int, like: Value) -> Value:
    """Return a scalar constant of the dtype of `like`."""
    return b.literal(np.array(value).astype(b.dtype(like).np))


def compare(b: Builder, kind: str, x: Value, y: Value | float) -> Value:
    """Return `equal`, `greater` or `less` as a bool tensor."""
    return convert(b, getattr(b, kind)(x, y), BOOL)


def greater_equal(b: Builder, x: Value, y: Value | float) -> Value:
    """x >= y as bool; false where either is NaN."""
    if b.dtype(x).is_float:
        return b.logical_or(compare(b, "greater", x, y), compare(b, "equal", x, y))
    return b.not_(compare(b, "less", x, y))


def less_equal(b: Builder, x: Value, y: Value | float) -> Value:
    """x <= y as bool; false where either is NaN."""
    if b.dtype(x).is_float:
        return b.logical_or(compare(b, "less", x, y), compare(b, "equal", x, y))
    return b.not_(compare(b, "greater", x, y))


def reshape(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    """Return `x` with other dims, each known or one -1 or 0 (copied) as `reshape` takes them."""
    if b.dims(x) == tuple(dims):
        return x
    return b.reshape(x, dims=list(dims))


def squeeze(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Return `x` without `axes`, each of extent 1; itself where there are none."""
    return b.squeeze(x, axes=sorted(axes)) if axes else x


def unsqueeze(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Return `x` with `axes` of extent 1, numbered in the result; itself where there are none."""
    return b.unsqueeze(x, axes=sorted(axes)) if axes else x


def transpose(b: Builder, x: Value, permutation: Sequence[int]) -> Value:
    """Return `x` with permuted axes; itself where the order stays."""
    if list(permutation) == list(range(len(permutation))):
        return x
    return b.transpose(x, permutation=list(permutation))


def slice_(
    b: Builder, x: Value, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]
) -> Value:
    """Return a static slice; `x` itself where it keeps everything."""
    dims = b.dims(x)
    if all(s == 0 and dims[a] == e for a, s, e in zip(axes, starts, ends, strict=True)):
        return x
    return b.slice(x, axes=list(axes), starts=list(starts), ends=list(ends))


def concat(b: Builder, xs: Sequence[Value], axis: int) -> Value:
    """Return the tensors one after another along `axis`."""
    return xs[0] if len(xs) == 1 else b.concat(list(xs), axis=axis)


def zeros(b: Builder, dims: Sequence[int], dtype: DType) -> Value:
    """Return a constant of zeros; NotSupported where it is too large."""
    limits.filled(dims)
    return b.literal(np.broadcast_to(np.zeros((), dtype.np), tuple(dims)))


def channel_dims(rank: int, axis: int, size: int = -1) -> list[int]:
    """Dims that hold one extent at `axis` and 1 elsewhere."""
    return [size if i == axis else 1 for i in range(rank)]


def along(b: Builder, v: Value, x: Value, axis: int) -> Value:
    """Return a vector `v` along `axis` of `x`, broadcast as MIGraphX's `broadcast` does."""
    dims = b.dims(x)
    if DYN in dims:  # the pointwise op that takes it broadcasts it: its dims are 1 elsewhere
        v = same_extent(b, v, 0, x, axis, f"a vector as long as dim {axis}")
        return unsqueeze(b, v, range(1, len(dims) - axis))
    return b.op("broadcast", v, axis=axis, out_lens=list(dims))


def extent(b: Builder, x: Value, axis: int) -> Value:
    """Return the size of one axis as a 0-d i64 tensor."""
    return squeeze(b, b.shape(x, axis, axis + 1), [0])


def extent_as(b: Builder, x: Value, axis: int, dtype: DType) -> Value:
    """Return the size of one axis as a 0-d tensor of `dtype`; a literal where it is known."""
    d = b.dims(x)[axis]
    if d != DYN:
        return b.literal(np.array(d).astype(dtype.np))
    return convert(b, extent(b, x, axis), dtype)


def arange(b: Builder, n: int | Value, dtype: DType = INT64) -> Value:
    """0, 1, .. n-1 as a vector; `n` a number or a 0-d i64 tensor."""
    if not isinstance(n, int):
        known = b.const(n)
        if known is None:
            zero, one = b.literal(0, INT64), b.literal(1, INT64)
            return convert(b, b.dynamic_range(zero, n, one), dtype)
        n = int(known)
    limits.table((n,), "a range", 8)
    return b.literal(np.arange(n).astype(dtype.np))


def axis_range(b: Builder, x: Value, axis: int, dtype: DType = INT64) -> Value:
    """0 .. extent-1 of one axis of `x` as a vector."""
    d = b.dims(x)[axis]
    return arange(b, d if d != DYN else extent(b, x, axis), dtype)


def wide(dtype: DType) -> DType:
    """Return the type that sums and powers of `dtype` are computed in: f32 for 16- and 8-bit
    floats.
    """
    return dtypes.FLOAT if dtype.is_low_precision else dtype


def single(b: Builder, x: Value, what: str) -> Value:
    """Return a tensor of one element as a 0-d tensor."""
    dims = b.dims(x)
    if any(d not in (1, DYN) for d in dims):
        raise ShapeError(f"{what} expected one element, got dims {show_dims(dims)}")
    return squeeze(b, x, range(len(dims))) if dims else x


def require(b: Builder, x: Value, condition: Value, expected: str) -> Value:
    """Return `x`; the run fails unless `condition` holds, which is known or of static dims.

    Readers of the checked values must use the result. Errors: ModelError if the condition is known
    to be false.
    """
    known = b.const(condition)
    if known is None:
        told = f"{expected} ({b.operator})" if b.operator else expected
        return b.op("require", x, condition, expected=told)
    if not known.all():
        raise ModelError(f"expected {expected}")
    return x


def require_extent(b: Builder, x: Value, axis: int, wanted: int, told: str = "") -> Value:
    """Return `x`; the run fails unless its extent along `axis` is `wanted`.

    told: the expected value in the error's words, instead of the extent.
    """
    fits = compare(b, "equal", extent(b, x, axis), wanted)
    return require(b, x, fits, told or f"extent {wanted} along dim {axis}")


def known_extent(b: Builder, x: Value, axis: int, wanted: int, what: str) -> Value:
    """Return `x` with a known extent along `axis`; the run fails if it differs."""
    if b.dims(x)[axis] != DYN:
        return x
    dims = [0] * len(b.dims(x))
    dims[axis] = wanted
    told = f"{what} of extent {wanted} along dim {axis}"
    return b.reshape(require_extent(b, x, axis, wanted, told), dims=dims)


def fitted(b: Builder, x: Value, v: Value, what: str) -> tuple[Value, Value]:
    """Return `x` and an operand that broadcasts to its dims; `x` is never broadcast to the operand.

    If the operand's dim is known and not 1, a dynamic dim of `x` becomes that size. The run fails
    if dims do not fit. what: the operand, for messages. Errors: ShapeError for known dims.
    """
    rank, own = len(b.dims(x)), b.dims(v)
    told = f"{what} that broadcasts to the input"
    for axis in range(-len(own), 0):
        have = b.dims(x)[axis] if rank >= -axis else 1
        if own[axis] == 1 or (own[axis] == have and have != DYN):
            continue
        if DYN not in (own[axis], have):
            got = f"{show_dims(own)} and {show_dims(b.dims(x))}"
            raise ShapeError(f"expected {told}, got dims {got}")
        if own[axis] != DYN:
            x = known_extent(b, x, rank + axis, own[axis], f"an input that fits {what}:")
        elif have == 1:
            v = require_extent(b, v, len(own) + axis, 1, told)
        elif not b.probe.same(v, len(own) + axis, x, rank + axis):
            size = extent(b, v, len(own) + axis)
            same = compare(b, "equal", size, extent(b, x, rank + axis))
            v = require(b, v, b.logical_or(same, compare(b, "equal", size, 1)), told)
    return x, v


def same_extent(b: Builder, v: Value, axis: int, x: Value, other: int, told: str) -> Value:
    """Return `v`; the run fails unless its extent along `axis` equals that of `x` along `other`.

    told: the expected value in the error's words. Errors: ShapeError for known extents.
    """
    own, wanted = b.dims(v)[axis], b.dims(x)[other]
    if DYN not in (own, wanted):
        if own != wanted:
            raise ShapeError(f"expected {told}, got extents {own} and {wanted}")
        return v
    if b.probe.same(v, axis, x, other):
        return v
    return require(b, v, compare(b, "equal", extent(b, v, axis), extent(b, x, other)), told)
