"""Shape operators whose axes, bounds or pads are run-time values, by gathers and selects.

The ranks are always known: an operand that lists axes or bounds has a static length.
"""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    convert,
    extent,
    greater_equal,
    less_equal,
    require,
    require_extent,
    slice_,
    squeeze,
    unsqueeze,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def length(b: Builder, v: Value, what: str) -> int:
    """Return the static length of a 1-D operand (a 0-d one counts as 1)."""
    dims = b.dims(v)
    if len(dims) > 1:
        raise ModelError(f"{what} expected a 1-D tensor, got rank {len(dims)}")
    if DYN in dims:
        raise NotSupported(f"{what} of a length that is known at run time only")
    return dims[0] if dims else 1


def element(b: Builder, v: Value, i: int) -> Value:
    """Return element i of a 1-D integer operand as a 0-d i64 tensor."""
    v = convert(b, v, INT64)
    if not b.dims(v):
        return v
    return squeeze(b, slice_(b, v, [0], [i], [i + 1]), [0])


def axis_hits(b: Builder, axes: Value, rank: int) -> Value:
    """Return a bool table, listed axes x `rank`: the axis that each names (negative from the
    back).
    """
    n = length(b, axes, "axes")
    axes = in_rank(b, axes, rank)
    wanted = _positive(b, b.reshape(convert(b, axes, INT64), dims=[n, 1]), rank)
    return compare(b, "equal", wanted, b.literal(np.arange(rank)[None, :]))


def in_rank(b: Builder, axes: Value, rank: int) -> Value:
    """Return `axes`; the run fails unless they lie in [-rank, rank)."""
    inside = b.logical_and(greater_equal(b, axes, -rank), compare(b, "less", axes, rank))
    return require(b, axes, inside, f"axes in [-{rank}, {rank})")


def distinct(b: Builder, axes: Value, rank: int, told: str) -> Value:
    """Return `axes`; the run fails if two name the same axis."""
    if length(b, axes, "axes") < 2:
        return axes
    named = convert(b, axis_hits(b, axes, rank), INT64)
    counts = squeeze(b, b.reduce_sum(named, axes=[0]), [0])
    return require(b, axes, less_equal(b, counts, 1), told)


def flags(b: Builder, axes: Value, rank: int) -> Value:
    """Return a bool vector of `rank`: whether each axis is among `axes`."""
    hits = convert(b, axis_hits(b, axes, rank), INT64)
    return compare(b, "greater", squeeze(b, b.reduce_sum(hits, axes=[0]), [0]), 0)


def _positive(b: Builder, axes: Value, rank: int) -> Value:
    return b.where(compare(b, "less", axes, 0), b.add(axes, rank), axes)


def inserted_dims(b: Builder, x: Value, axes: Value) -> Value:
    """Return the dims of Unsqueeze: 1 at `axes`, the input's in order elsewhere."""
    rank = limits.rank(len(b.dims(x)) + length(b, axes, "axes"))
    new = flags(b, axes, rank)
    if not b.dims(x):
        return b.ints([1] * rank)
    before = b.prefix_scan_sum(convert(b, b.not_(new), INT64), axis=0, exclusive=True)
    source = b.gather(b.shape(x), b.min(before, len(b.dims(x)) - 1), axis=0)
    return b.where(new, 1, source)


def kept_dims(b: Builder, x: Value, axes: Value) -> Value:
    """Return the dims of Squeeze: the input's without those at `axes`."""
    rank = len(b.dims(x))
    left = rank - length(b, axes, "axes")
    if left < 0:
        raise ModelError("more axes than dims")
    if left == 0:
        return b.ints([])
    keep = b.not_(flags(b, axes, rank))
    place = b.prefix_scan_sum(convert(b, keep, INT64), axis=0, exclusive=True)
    chosen = b.logical_and(
        compare(b, "equal", b.literal(np.arange(left)[:, None]), unsqueeze(b, place, [0])),
        unsqueeze(b, keep, [0]),
    )
    picked = b.mul(convert(b, chosen, INT64), unsqueeze(b, b.shape(x), [0]))
    return squeeze(b, b.reduce_sum(picked, axes=[1]), [1])


def _is_counted(b: Builder, v: Value | None) -> bool:
    return v is not None and DYN not in b.dims(v)


def _of_length(b: Builder, v: Value, n: int, told: str) -> Value:
    """Return `v`, a row of `n`; the run fails if it has another length."""
    if _is_counted(b, v) or len(b.dims(v)) != 1:
        return v
    return b.reshape(require_extent(b, v, 0, n, told), dims=[n])


def strided_slice(
    b: Builder,
    x: Value,
    starts: Value,
    ends: Value,
    axes: Value | None,
    steps: Value | None,
    *,
    clamp_start: bool = False,
) -> Value:
    """Slice by run-time bounds: one gather per cut axis, at indices start + i step.

    For a start before the first element and a negative step, Python's result is empty; with
    `clamp_start` the start is the first element. Bounds whose length is known only at run time must
    be for one axis, else the run fails. Exporters slice them from a list, one at a time.
    """
    rank = len(b.dims(x))
    stated = next((v for v in (starts, ends, axes, steps) if _is_counted(b, v)), None)
    uncounted = stated is None and len(b.dims(starts)) == 1
    n = 1 if uncounted else length(b, starts if stated is None else stated, "starts")
    why = "a length that the model does not state" if uncounted else "as many as others are"

    def row(v: Value, what: str) -> Value:
        return _of_length(b, v, n, f"{n} in the {what} of a slice ({why})")

    starts, ends = row(starts, "starts"), row(ends, "ends")
    axes = None if axes is None else row(axes, "axes")
    steps = None if steps is None else row(steps, "steps")
    starts, ends = convert(b, starts, INT64), convert(b, ends, INT64)
    if steps is not None:
        moving = b.not_(compare(b, "equal", steps, 0))
        steps = require(b, steps, moving, "steps other than 0")
    known = list(range(n)) if axes is None else None
    if axes is not None and (found := b.const(axes)) is not None:
        known = [int(a) for a in found.reshape(-1)]
    step_known = steps is None or (
        (s := b.const(steps)) is not None and all(int(i) == 1 for i in s.reshape(-1))
    )
    if known is not None and any(not -rank <= a < rank for a in known):
        raise ModelError(f"axes {known} are out of range for rank {rank}")
    if known is not None and step_known:
        return b.op("slice", x, starts, ends, axes=[a % rank for a in known])
    if known is not None:
        out = x
        for i, axis in enumerate(known):
            step = b.literal(1, INT64) if steps is None else element(b, steps, i)
            first, last = element(b, starts, i), element(b, ends, i)
            out = _cut(b, out, axis % rank, first, last, step, clamp_start)
        return out
    assert axes is not None
    # otherwise one entry would be lost
    axes = distinct(b, axes, rank, "axes of a slice that differ")
    if step_known:
        return b.op("slice", x, starts, ends, convert(b, in_rank(b, axes, rank), INT64))
    one = b.literal(1, INT64) if steps is None else None
    hits = axis_hits(b, axes, rank)
    count = convert(b, hits, INT64)
    cut = compare(b, "greater", squeeze(b, b.reduce_sum(count, axes=[0]), [0]), 0)

    def per_axis(values: Value | None, absent: Value | int) -> Value:
        if values is None:
            return b.ints([1] * rank)
        column = b.reshape(convert(b, values, INT64), dims=[n, 1])
        total = squeeze(b, b.reduce_sum(b.mul(count, column), axes=[0]), [0])
        return b.where(cut, total, absent)

    all_starts = per_axis(starts, 0)
    all_ends = per_axis(ends, b.shape(x))
    all_steps = per_axis(steps, 1)
    out = x
    for axis in range(rank):
        step = one if one is not None else element(b, all_steps, axis)
        first, last = element(b, all_starts, axis), element(b, all_ends, axis)
        out = _cut(b, out, axis, first, last, step, clamp_start)
    return out


def _cut(
    b: Builder, x: Value, axis: int, start: Value, end: Value, step: Value, clamp_start: bool
) -> Value:
    """Return x[start:end:step] along `axis`; bounds are Python's, except for clamp_start."""
    d = extent(b, x, axis)
    back = compare(b, "less", step, 0)
    top = b.where(back, b.sub(d, 1), d)  # upper limit of a start and an end
    bottom = b.where(back, b.literal(-1, INT64), b.literal(0, INT64))

    def bounded(v: Value, low: Value | int) -> Value:
        v = b.where(compare(b, "less", v, 0), b.add(v, d), v)
        return b.min(b.max(v, low), top)

    # the limit of an empty axis is -1 backwards, below `low`: the slice is empty
    first, last = bounded(start, 0 if clamp_start else bottom), bounded(end, bottom)
    index = b.dynamic_range(first, last, step)
    return b.gather(x, index, axis=axis)


def gather_or(b: Builder, x: Value, index: Value, axis: int, value: Value) -> Value:
    """Return `x` at `index` along `axis`; `value` for an index outside."""
    d = extent(b, x, axis)
    rank = len(b.dims(x))
    if b.dims(x)[axis] == 0:  # there is nothing to gather
        around = [b.shape(x, 0, axis), b.shape(index), b.shape(x, axis + 1, rank)]
        return b.broadcast_with_dims(value, b.concat(around, axis=0))
    inside = b.logical_and(greater_equal(b, index, 0), compare(b, "less", index, d))
    if b.dims(x)[axis] == DYN:  # the axis may be empty, so that only `value` is gathered
        return b.gather(longer(b, x, axis, value), b.where(inside, index, d), axis=axis)
    safe = b.min(b.max(index, 0), b.sub(d, 1))
    inside = unsqueeze(b, inside, range(1, rank - axis))
    return b.where(inside, b.gather(x, safe, axis=axis), value)


def longer(b: Builder, x: Value, axis: int, value: Value) -> Value:
    """Append one element with `value` to `x` along `axis`."""
    rank = len(b.dims(x))
    dims = b.concat([b.shape(x, 0, axis), b.ints([1]), b.shape(x, axis + 1, rank)], axis=0)
    kind = TensorType(b.dtype(x), (*b.dims(x)[:axis], 1, *b.dims(x)[axis + 1 :]))
    return b.concat([x, b.broadcast_with_dims(value, dims, results=[kind])], axis=axis)


def _is_known_positive(b: Builder, v: Value) -> bool:
    """Return whether a number is known and not negative."""
    known = b.const(v)
    return known is not None and int(known.reshape(())) >= 0


def pad_at_run_time(
    b: Builder, x: Value, begin: Value, end: Value, axis: int, mode: str, value: Value | None
) -> Value:
    """Pad one axis by 0-d i64 amounts, negative ones cut first; modes as ONNX's Pad."""
    d = extent(b, x, axis)
    total = b.add(b.add(d, begin), end)
    total = require(b, total, greater_equal(b, total, 0), "pads that cut no more than there is")
    first = None
    if not _is_known_positive(b, begin) or not _is_known_positive(b, end):
        first = b.max(b.neg(begin), 0)
        d = b.sub(b.sub(d, first), b.max(b.neg(end), 0))
        total = require(b, total, greater_equal(b, d, 0), "pads that cut no more than there is")
    if mode == "constant":
        assert value is not None
        return gather_or(b, x, b.sub(arange(b, total), begin), axis, value)
    most = b.max(begin, end)
    if mode == "reflect":
        some = less_equal(b, most, b.max(b.sub(d, 1), 0))
        total = require(b, total, some, f"reflecting pads smaller than dim {axis}")
    else:
        some = b.logical_or(compare(b, "greater", d, 0), less_equal(b, most, 0))
        total = require(b, total, some, "elements to repeat at the border")
    index = b.sub(arange(b, total), begin)
    if first is not None:
        index = b.sub(index, first)
    if mode == "edge":
        index = b.min(b.max(index, 0), b.sub(d, 1))
    elif mode == "wrap":
        index = b.mod(index, d)
    else:  # reflect: the part before the first element, then the part after the last
        index = b.max(index, b.neg(index))
        index = b.min(index, b.sub(b.mul(b.sub(d, 1), 2), index))
    if first is not None:
        index = b.add(index, first)
    return b.gather(x, index, axis=axis)
