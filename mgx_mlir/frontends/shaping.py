"""Reshape, split, slice, expand and tile with static or dynamic extents, for every file format."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError, ShapeError
from mgx_mlir.core.shapes import DYN, TensorType, broadcast_dims
from mgx_mlir.frontends.extents import elements, extents, reshaped, spread, times
from mgx_mlir.frontends.helpers import (
    axes_in,
    compare,
    concat,
    convert,
    extent,
    greater_equal,
    require,
    require_extent,
    reshape,
    slice_,
    static_dims,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.runtime_axes import strided_slice
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder
from mgx_mlir.symbolic.expressions import Int


def reshape_by(b: Builder, x: Value, shape: Value, allowzero: bool) -> Value:
    """Reshape to a tensor of extents: 0 copies (unless `allowzero`), one -1 takes the rest."""
    known = b.const(shape)
    if known is not None:
        return reshape_known(b, x, [int(d) for d in known.reshape(-1)], allowzero)
    shape = convert(b, shape, INT64)
    if allowzero and 0 in b.dims(x):
        return b.broadcast_with_dims(b.literal(np.zeros((), b.dtype(x).np)), shape)
    dims = _dims_by_symbols(b, x, shape, allowzero)
    if dims is None:
        return b.reshape(x, shape, allowzero=allowzero or None)
    if sum(d == DYN for d in dims) + dims.count(-1) <= 1:
        return b.reshape(x, dims=[-1 if d == DYN else d for d in dims])
    source = b.dims(x)
    stated = [source[i] if d == 0 else DYN if d == -1 else d for i, d in enumerate(dims)]
    results = [TensorType(b.dtype(x), tuple(stated))]
    return b.reshape(x, shape, allowzero=allowzero or None, results=results)


def _dims_by_symbols(b: Builder, x: Value, shape: Value, allowzero: bool) -> list[int] | None:
    """Return the known part of a run-time shape: numbers, 0 for the input's extent at its index, or
    DYN.
    """
    wanted = elements_of(b, shape)
    if wanted is None or (allowzero and 0 in wanted):
        return None
    own = b.probe.dims(x)
    return [
        w if isinstance(w, int) else 0 if i < len(own) and b.probe.are_equal(w, own[i]) else DYN
        for i, w in enumerate(wanted)
    ]


def elements_of(b: Builder, v: Value) -> list[Int] | None:
    """Return the elements of a small integer tensor as numbers or expressions, if some dims are
    dynamic.
    """
    return b.probe.elements(v) if b.probe.active else None


def reshape_known(b: Builder, x: Value, dims: list[int], allowzero: bool) -> Value:
    """Reshape to known dims; 0 copies an extent unless `allowzero`."""
    source = b.dims(x)
    if not allowzero:
        for i, d in enumerate(dims):
            if d == 0 and i >= len(source):
                raise ModelError(f"shape {dims} has 0 at {i}, beyond the input's rank")
        resolved = [source[i] if d == 0 else d for i, d in enumerate(dims)]
    else:
        resolved = dims
    if 0 in resolved:
        if -1 in resolved:
            if allowzero or DYN in source:
                raise ModelError(f"shape {dims} has both 0 and -1")
            raise ModelError(f"shape {dims}: -1 cannot be inferred from 0 elements")
        if DYN not in source:
            if int(np.prod(source)) != 0:
                raise ModelError(f"shape {dims} has 0 elements, the input dims {list(source)}")
            return zeros(b, resolved, b.dtype(x))
    return b.reshape(x, dims=dims) if not allowzero else b.reshape(x, dims=resolved)


def split_static(b: Builder, x: Value, axis: int, sizes: Sequence[int]) -> tuple[Value, ...]:
    """Return `x` cut along `axis` into parts of `sizes`."""
    dims = b.dims(x)
    if any(s < 0 for s in sizes) or (dims[axis] != DYN and sum(sizes) != dims[axis]):
        raise ModelError(f"split {list(sizes)} does not add up to dim {axis} ({dims[axis]})")
    if dims[axis] == DYN:
        x = require_extent(b, x, axis, sum(sizes))
    ends = np.cumsum(sizes)
    return tuple(
        b.slice(x, axes=[axis], starts=[int(e - s)], ends=[int(e)])
        for s, e in zip(sizes, ends, strict=True)
    )


def split_evenly(b: Builder, x: Value, axis: int, count: int) -> tuple[Value, ...]:
    """Split into `count` equal parts, the last smaller if it does not divide."""
    if count < 1:
        raise ModelError(f"expected at least one part, got {count}")
    total = b.dims(x)[axis]
    if total == DYN:
        length = extent(b, x, axis)
        part = b.div(b.add(length, count - 1), count)
        bounds = [b.min(b.mul(part, i), length) for i in range(count + 1)]
        return tuple(
            b.op("slice", x, unsqueeze(b, s, [0]), unsqueeze(b, e, [0]), axes=[axis])
            for s, e in itertools.pairwise(bounds)
        )
    part = -(-total // count)
    sizes = [max(0, min(part, total - i * part)) for i in range(count)]
    return split_static(b, x, axis, sizes)


def split_by(b: Builder, x: Value, axis: int, split: Value) -> tuple[Value, ...]:
    """Split `axis` into parts of the sizes that a vector states."""
    known = b.const(split)
    if known is not None:
        return split_static(b, x, axis, [int(s) for s in known.reshape(-1)])
    count = static_dims(b, split, "split")[0]
    split = require(b, split, greater_equal(b, split, 0), "split sizes of 0 or more")
    ends = b.prefix_scan_sum(split, axis=0)
    starts = b.sub(ends, split)
    total = b.reduce_sum(convert(b, split, INT64), axes=[0])
    whole = compare(b, "equal", total, b.shape(x, axis, axis + 1))
    ends = require(b, ends, whole, f"split sizes that add up to dim {axis}")
    return tuple(
        b.op(
            "slice",
            x,
            slice_(b, starts, [0], [i], [i + 1]),
            slice_(b, ends, [0], [i], [i + 1]),
            axes=[axis],
        )
        for i in range(count)
    )


def slice_known(
    b: Builder,
    x: Value,
    starts: list[int],
    ends: list[int],
    axes: list[int] | None,
    steps: list[int] | None,
    *,
    clamp_start: bool = False,
) -> Value:
    """Slice with known bounds and maybe dynamic extents: slice, reverse and step.

    `clamp_start`: as in runtime_axes.strided_slice.
    """
    dims = b.dims(x)
    axes = axes_in(list(range(len(starts))) if axes is None else axes, len(dims))
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ModelError("starts, ends, axes and steps differ in length")
    if any(s == 0 for s in steps):
        raise ModelError("steps expected other numbers than 0")
    if any(dims[a] == DYN and s < 0 for a, s in zip(axes, steps, strict=True)):
        bounds = (b.ints(v) for v in (starts, ends, axes, steps))
        return strided_slice(b, x, *bounds, clamp_start=clamp_start)
    cut: list[tuple[int, int, int]] = []
    flip: list[int] = []
    stride: list[tuple[int, int]] = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        d = dims[axis]
        if d == DYN:
            cut.append((axis, start, end))
            if step > 1:
                stride.append((axis, step))
            continue
        if clamp_start:
            start = max(start, -d)
        picked = range(*slice(start, None if step < 0 and end < -d else end, step).indices(d))
        if not picked:
            cut.append((axis, 0, 0))
            continue
        low, high = min(picked[0], picked[-1]), max(picked[0], picked[-1])
        cut.append((axis, low, high + 1))
        if step < 0:
            flip.append(axis)
        if abs(step) > 1:
            stride.append((axis, abs(step)))
    out = x
    cut = [(a, s, e) for a, s, e in cut if (s, e) != (0, dims[a])]
    if cut:
        a, s, e = zip(*cut, strict=True)
        out = b.slice(out, axes=a, starts=s, ends=e)
    if flip:
        out = b.reverse(out, axes=flip)
    if stride:
        a, s = zip(*stride, strict=True)
        out = b.step(out, axes=a, steps=s)
    return out


def expand(b: Builder, x: Value, shape: Value) -> Value:
    """Return `x` broadcast against a tensor of extents, both ways."""
    known, dims = b.const(shape), b.dims(x)
    if known is None:
        return _expanded(b, x, convert(b, shape, INT64))
    wanted = [int(d) for d in known.reshape(-1)]
    if any(d < 0 for d in wanted):
        raise ModelError(f"shape {wanted} has a negative extent")
    target = broadcast_dims(dims, wanted)
    if DYN not in dims:
        return b.multibroadcast(x, target)
    return _expanded(b, x, b.ints(wanted))


def _expanded(b: Builder, x: Value, shape: Value) -> Value:
    """Expand at run time; return `x` if every extent is its own, or 1, for all sizes."""
    dims, wanted = b.dims(x), elements_of(b, shape)
    if wanted is None:
        return b.broadcast_with_dims(x, shape)
    own = b.probe.dims(x)
    lead = len(own) - len(wanted)
    if lead >= 0 and all(
        w == 1 or b.probe.are_equal(w, d) for w, d in zip(wanted, own[lead:], strict=True)
    ):
        return x
    extents = [w if isinstance(w, int) else DYN for w in wanted]
    try:
        target = broadcast_dims(dims, extents)
    except ShapeError as e:
        raise ModelError(e.message) from None
    if DYN not in (*dims, *target):
        return b.multibroadcast(x, target)
    return b.broadcast_with_dims(x, shape, results=[TensorType(b.dtype(x), target)])


def tile(b: Builder, x: Value, repeats: Value) -> Value:
    """Reshape each axis to {1, extent}, broadcast to {repeat, extent}, and join the pair."""
    dims = b.dims(x)
    rank = len(dims)
    if static_dims(b, repeats, "repeats") != (rank,):
        raise ModelError(f"repeats expected {rank} numbers, got dims {b.dims(repeats)}")
    known = b.const(repeats)
    if known is not None and DYN not in dims:
        return tile_static(b, x, [int(r) for r in known])
    shape = b.shape(x)
    if 0 in dims:
        return b.broadcast_with_dims(b.literal(np.zeros((), b.dtype(x).np)), b.mul(repeats, shape))
    pairs = unsqueeze(b, x, [2 * i for i in range(rank)])
    columns = [unsqueeze(b, convert(b, v, INT64), [1]) for v in (repeats, shape)]
    wide = b.reshape(concat(b, columns, 1), dims=[2 * rank])
    counts = [n if isinstance(n, int) and n >= 0 else DYN for n in elements(b, repeats)]
    both = list(zip(counts, dims, strict=True))
    kinds = [
        TensorType(b.dtype(x), tuple(e for pair in both for e in pair)),
        TensorType(b.dtype(x), tuple(DYN if DYN in pair else pair[0] * pair[1] for pair in both)),
    ]
    spread_out = b.broadcast_with_dims(pairs, wide, results=kinds[:1])
    return b.reshape(spread_out, b.mul(repeats, shape), allowzero=True, results=kinds[1:])


def tile_static(b: Builder, x: Value, repeats: Sequence[int]) -> Value:
    """Repeat `x` along each axis by `repeats`."""
    dims = b.dims(x)
    if any(r < 0 for r in repeats):
        raise ModelError(f"repeats {list(repeats)} has a negative number")
    if all(r == 1 for r in repeats):
        return x
    out = [d * r for d, r in zip(dims, repeats, strict=True)]
    if 0 in out:
        return zeros(b, out, b.dtype(x))
    pairs = [e for d in dims for e in (1, d)]
    wide = [e for d, r in zip(dims, repeats, strict=True) for e in (r, d)]
    return reshape(b, b.multibroadcast(reshape(b, x, pairs), wide), out)


def repeated(b: Builder, x: Value, times_of: Mapping[int, int]) -> Value:
    """Repeat each element of `x` along axes: a b becomes a a b b."""
    own, axes = extents(b, x), [a for a, n in sorted(times_of.items()) if n > 1]
    wide, joined = list(own), list(own)
    for i, axis in enumerate(axes):
        wide.insert(axis + 1 + i, times_of[axis])
        joined[axis] = times(b, own[axis], times_of[axis])
    if not axes:
        return x
    pairs = unsqueeze(b, x, [a + 1 + i for i, a in enumerate(axes)])
    return reshaped(b, spread(b, pairs, wide), joined)
