"""Reshaping, joining and cutting tensors; dims may be computed at run time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.build import Builder
from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError, ShapeError
from mgx_mlir.core.shapes import DYN, TensorType, broadcast_dims
from mgx_mlir.frontends.onnx.helpers import (
    Value,
    arange,
    axes_in,
    axis_in,
    concat,
    convert,
    extent,
    known_extents,
    reshape,
    slice_,
    squeeze,
    static_dims,
    trial_values,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.onnx.problems import NotSupported
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.runtime_axes import (
    element,
    gather_or,
    inserted_dims,
    kept_dims,
    strided_slice,
)

# ---- Reshape, Flatten, Squeeze, Unsqueeze ------------------------------------------------------


@onnx_op("Reshape", since=5)
def reshape_op(b: Builder, node: Any, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    known = b.const(shape)
    if known is not None:
        return _reshaped(b, x, [int(d) for d in known.reshape(-1)], bool(allowzero))
    shape = convert(b, shape, INT64)
    if allowzero and 0 in b.dims(x):
        return b.broadcast_with_dims(b.literal(np.zeros((), b.dtype(x).np)), shape)
    dims = _dims_by_symbols(b, x, shape, bool(allowzero))
    if dims is None:
        return b.reshape(x, shape)
    if sum(d == DYN for d in dims) + dims.count(-1) <= 1:
        return b.reshape(x, dims=[-1 if d == DYN else d for d in dims])
    source = b.dims(x)
    stated = [source[i] if d == 0 else DYN if d == -1 else d for i, d in enumerate(dims)]
    return b.reshape(x, shape, results=[TensorType(b.dtype(x), tuple(stated))])


def _dims_by_symbols(b: Builder, x: Value, shape: Value, allowzero: bool) -> list[int] | None:
    """What is known of a run-time shape: numbers, 0 for the input's extent in its place, or DYN."""
    trials = trial_values(b, shape)
    if trials is None:
        return None
    sources = [k.type.dims for k in b.probe.known(x)]
    out = []
    for i, wanted in enumerate(zip(*trials, strict=True)):
        own = [s[i] if i < len(s) else None for s in sources]
        if len(set(wanted)) == 1:
            if allowzero and wanted[0] == 0:
                return None
            out.append(wanted[0])
        else:
            out.append(0 if list(wanted) == own else DYN)
    return out


def _reshaped(b: Builder, x: Value, dims: list[int], allowzero: bool) -> Value:
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


@onnx_op("Reshape", since=1)
def reshape_1(
    b: Builder, node: Any, x: Value, *, shape: Sequence[int] = (), consumed_inputs: Any = None
) -> Value:
    return _reshaped(b, x, list(shape), False)


@onnx_op("Flatten", since=1)
def flatten(b: Builder, node: Any, x: Value, *, axis: int = 1) -> Value:
    rank = len(b.dims(x))
    if not -rank <= axis <= rank:
        raise ModelError(f"axis {axis} is out of range for rank {rank}")
    return b.flatten(x, axis=axis % rank if axis < 0 else axis)


@onnx_op("Squeeze", since=13)
def squeeze_op(b: Builder, node: Any, x: Value, axes: Value = None) -> Value:
    if axes is None:
        return squeeze_1(b, node, x)
    known = b.const(axes)
    if known is not None:
        return squeeze_1(b, node, x, axes=[int(a) for a in known.reshape(-1)])
    return b.reshape(x, kept_dims(b, x, axes))


@onnx_op("Squeeze", since=1)
def squeeze_1(b: Builder, node: Any, x: Value, *, axes: Sequence[int] | None = None) -> Value:
    dims = b.dims(x)
    if axes is None:
        if DYN in dims:
            raise NotSupported("dynamic dims without axes")
        axes = [i for i, d in enumerate(dims) if d == 1]
    found = squeeze(b, x, axes_in(axes, len(dims)))
    return found


@onnx_op("Unsqueeze", since=13)
def unsqueeze_op(b: Builder, node: Any, x: Value, axes: Value) -> Value:
    known = b.const(axes)
    if known is not None:
        return unsqueeze_1(b, node, x, axes=[int(a) for a in known.reshape(-1)])
    return b.reshape(x, inserted_dims(b, x, axes))


@onnx_op("Unsqueeze", since=1)
def unsqueeze_1(b: Builder, node: Any, x: Value, *, axes: Sequence[int]) -> Value:
    found = unsqueeze(b, x, axes_in(axes, len(b.dims(x)) + len(axes)))
    return found


@onnx_op("Transpose", since=1)
def transpose_op(b: Builder, node: Any, x: Value, *, perm: Sequence[int] | None = None) -> Value:
    rank = len(b.dims(x))
    perm = list(range(rank))[::-1] if perm is None else list(perm)
    if sorted(perm) != list(range(rank)):
        raise ModelError(f"perm {perm} is no permutation of rank {rank}")
    return b.transpose(x, permutation=perm)


# ---- Shape, Size -------------------------------------------------------------------------------


@onnx_op("Shape", since=15)
def shape_op(b: Builder, node: Any, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    return b.shape(x, start, end)


@onnx_op("Shape", since=1)
def shape_1(b: Builder, node: Any, x: Value) -> Value:
    return b.shape(x)


@onnx_op("Size", since=1)
def size(b: Builder, node: Any, x: Value) -> Value:
    dims = b.dims(x)
    if DYN not in dims:
        return b.literal(np.array(int(np.prod(dims, dtype=np.int64)), np.int64))
    return squeeze(b, b.reduce_prod(b.shape(x), axes=[0]), [0])


# ---- Concat, Split, Slice ----------------------------------------------------------------------


@onnx_op("Concat", since=4)
def concat_op(b: Builder, node: Any, *xs: Value, axis: int) -> Value:
    if not xs or any(x is None for x in xs):
        raise ModelError("expected at least one input, none of them absent")
    axis = axis_in(axis, len(b.dims(xs[0])))
    return xs[0] if len(xs) == 1 else b.concat(list(xs), axis=axis)


@onnx_op("Concat", since=1)
def concat_1(b: Builder, node: Any, *xs: Value, axis: int = 1) -> Value:
    return concat_op(b, node, *xs, axis=axis)


def split_static(b: Builder, x: Value, axis: int, sizes: Sequence[int]) -> tuple[Value, ...]:
    """`x` cut along `axis` into parts of `sizes`."""
    dims = b.dims(x)
    if any(s < 0 for s in sizes) or (dims[axis] != DYN and sum(sizes) != dims[axis]):
        raise ModelError(f"split {list(sizes)} does not add up to dim {axis} ({dims[axis]})")
    ends = np.cumsum(sizes)
    return tuple(
        b.slice(x, axes=[axis], starts=[int(e - s)], ends=[int(e)])
        for s, e in zip(sizes, ends, strict=True)
    )


@onnx_op("Split", since=18)
def split_op(
    b: Builder,
    node: Any,
    x: Value,
    split: Value = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
) -> Any:
    axis = axis_in(axis, len(b.dims(x)))
    if (split is None) == (num_outputs is None):
        raise ModelError("expected one of input 'split' and attribute 'num_outputs'")
    if split is None:
        return _split_evenly(b, x, axis, int(num_outputs or 0), node)
    return _split_by(b, node, x, axis, split)


def _split_evenly(b: Builder, x: Value, axis: int, count: int, node: Any) -> Any:
    """`count` equal parts, the last smaller where it does not divide."""
    if count < 1 or node.output_count > count:
        raise ModelError(f"{node.output_count} outputs of {count} parts")
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


def _split_by(b: Builder, node: Any, x: Value, axis: int, split: Value) -> Any:
    known = b.const(split)
    if known is not None:
        return split_static(b, x, axis, [int(s) for s in known.reshape(-1)])
    ends = b.prefix_scan_sum(split, axis=0)
    starts = b.sub(ends, split)
    count = static_dims(b, split, "split")[0]
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


@onnx_op("Split", since=13)
def split_13(b: Builder, node: Any, x: Value, split: Value = None, *, axis: int = 0) -> Any:
    axis = axis_in(axis, len(b.dims(x)))
    if split is not None:
        return _split_by(b, node, x, axis, split)
    return _split_equal(b, node, x, axis)


def _split_equal(b: Builder, node: Any, x: Value, axis: int) -> Any:
    total, count = b.dims(x)[axis], node.output_count
    if total != DYN and total % max(count, 1):
        raise ModelError(f"dim {axis} ({total}) does not split into {count} equal parts")
    return _split_evenly(b, x, axis, count, node)


@onnx_op("Split", since=2)
def split_2(
    b: Builder, node: Any, x: Value, *, axis: int = 0, split: Sequence[int] | None = None
) -> Any:
    axis = axis_in(axis, len(b.dims(x)))
    if split is not None:
        return split_static(b, x, axis, split)
    return _split_equal(b, node, x, axis)


@onnx_op("Slice", since=10)
def slice_op(
    b: Builder,
    node: Any,
    x: Value,
    starts: Value,
    ends: Value,
    axes: Value = None,
    steps: Value = None,
) -> Value:
    known = [None if v is None else b.const(v) for v in (starts, ends, axes, steps)]
    given = (starts, ends, axes, steps)
    if all(v is None or k is not None for v, k in zip(given, known, strict=True)):
        lists = [None if k is None else [int(i) for i in k.reshape(-1)] for k in known]
        return _slice_known(b, x, lists[0] or [], lists[1] or [], lists[2], lists[3])
    return strided_slice(b, x, starts, ends, axes, steps)


def _slice_known(
    b: Builder,
    x: Value,
    starts: list[int],
    ends: list[int],
    axes: list[int] | None,
    steps: list[int] | None,
) -> Value:
    """Slice with everything known but maybe the extents: slice, reverse and step."""
    dims = b.dims(x)
    axes = axes_in(list(range(len(starts))) if axes is None else axes, len(dims))
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ModelError("starts, ends, axes and steps differ in length")
    if any(s == 0 for s in steps):
        raise ModelError("steps expected other numbers than 0")
    if any(dims[a] == DYN and s < 0 for a, s in zip(axes, steps, strict=True)):
        return strided_slice(b, x, b.ints(starts), b.ints(ends), b.ints(axes), b.ints(steps))
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


@onnx_op("Slice", since=1)
def slice_1(
    b: Builder,
    node: Any,
    x: Value,
    *,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
) -> Value:
    return _slice_known(b, x, list(starts), list(ends), None if axes is None else list(axes), None)


# ---- Expand, Tile ------------------------------------------------------------------------------


@onnx_op("Expand", since=8)
def expand(b: Builder, node: Any, x: Value, shape: Value) -> Value:
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
    """Expand at run time; `x` itself where every extent is its own, or 1, for all sizes."""
    dims, trials = b.dims(x), trial_values(b, shape)
    if trials is None:
        return b.broadcast_with_dims(x, shape)
    sources = [k.type.dims for k in b.probe.known(x)]
    lead = len(dims) - len(trials[0])
    if lead >= 0 and all(
        w in (1, own)
        for wanted, source in zip(trials, sources, strict=True)
        for w, own in zip(wanted, source[lead:], strict=True)
    ):
        return x
    extents = known_extents(b, shape) or []
    try:
        target = broadcast_dims(dims, extents)
    except ShapeError as e:
        raise ModelError(e.message) from None
    if DYN not in (*dims, *target):
        return b.multibroadcast(x, target)
    return b.broadcast_with_dims(x, shape, results=[TensorType(b.dtype(x), target)])


@onnx_op("Tile", since=6)
def tile(b: Builder, node: Any, x: Value, repeats: Value) -> Value:
    """Each axis becomes {repeat, extent}, broadcast, and the pair is joined again."""
    dims = b.dims(x)
    rank = len(dims)
    if static_dims(b, repeats, "repeats") != (rank,):
        raise ModelError(f"repeats expected {rank} numbers, got dims {b.dims(repeats)}")
    known = b.const(repeats)
    if known is not None and DYN not in dims:
        return tile_static(b, x, [int(r) for r in known])
    shape = b.shape(x)
    pairs = unsqueeze(b, x, [2 * i for i in range(rank)])
    columns = [unsqueeze(b, convert(b, v, INT64), [1]) for v in (repeats, shape)]
    wide = b.reshape(concat(b, columns, 1), dims=[2 * rank])
    return b.reshape(b.broadcast_with_dims(pairs, wide), b.mul(repeats, shape))


def tile_static(b: Builder, x: Value, repeats: Sequence[int]) -> Value:
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


# ---- depth and space ---------------------------------------------------------------------------


@onnx_op("DepthToSpace", since=1)
def depth_to_space(b: Builder, node: Any, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    dims = b.dims(x)
    if len(dims) != 4 or DYN in dims[1:]:
        raise NotSupported("inputs other than {N, C, H, W} with known C, H, W")
    n, c, h, w = dims
    s = blocksize
    if s < 1 or c % (s * s):
        raise ModelError(f"blocksize {s} does not fit {c} channels")
    n = -1 if n == DYN else n
    if mode == "DCR":
        split, permutation = [n, s, s, c // s**2, h, w], [0, 3, 4, 1, 5, 2]
    elif mode == "CRD":
        split, permutation = [n, c // s**2, s, s, h, w], [0, 1, 4, 2, 5, 3]
    else:
        raise ModelError(f"attribute 'mode' expected DCR or CRD, got {mode}")
    moved = b.transpose(b.reshape(x, dims=split), permutation=permutation)
    return b.reshape(moved, dims=[n, c // s**2, h * s, w * s])


@onnx_op("SpaceToDepth", since=1)
def space_to_depth(b: Builder, node: Any, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    dims = b.dims(x)
    if len(dims) != 4 or DYN in dims[1:]:
        raise NotSupported("inputs other than {N, C, H, W} with known C, H, W")
    n, c, h, w = dims
    s = blocksize
    if s < 1 or h % s or w % s:
        raise ModelError(f"blocksize {s} does not divide {h}x{w}")
    n = -1 if n == DYN else n
    if mode not in ("DCR", "CRD"):
        raise ModelError(f"attribute 'mode' expected DCR or CRD, got {mode}")
    permutation = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = b.transpose(b.reshape(x, dims=[n, c, h // s, s, w // s, s]), permutation=permutation)
    return b.reshape(moved, dims=[n, c * s * s, h // s, w // s])


@onnx_op("CenterCropPad", since=18)
def center_crop_pad(
    b: Builder, node: Any, x: Value, shape: Value, *, axes: Sequence[int] | None = None
) -> Value:
    """Cut or zero-pad evenly on both sides; the odd element goes to the end."""
    dims = b.dims(x)
    axes = axes_in(list(range(len(dims))) if axes is None else axes, len(dims))
    known = b.const(shape)
    if known is None:
        return _center_at_run_time(b, x, axes, shape)
    wanted = [int(d) for d in known.reshape(-1)]
    if len(wanted) != len(axes) or any(dims[a] == DYN for a in axes):
        raise ModelError(f"shape {wanted} expected one extent per axis, of static dims")
    cuts = [(a, (dims[a] - w) // 2, w) for a, w in zip(axes, wanted, strict=True) if w < dims[a]]
    out = x
    if cuts:
        a, s, w = zip(*cuts, strict=True)
        out = b.slice(x, axes=a, starts=s, ends=[i + j for i, j in zip(s, w, strict=True)])
    pads = [0] * (2 * len(dims))
    for a, w in zip(axes, wanted, strict=True):
        missing = max(0, w - dims[a])
        pads[a], pads[a + len(dims)] = missing // 2, missing - missing // 2
    if any(pads):
        out = b.pad(out, pads=pads)
    return out


def _center_at_run_time(b: Builder, x: Value, axes: Sequence[int], shape: Value) -> Value:
    """Each axis gathers at 0..n-1 shifted by half the difference, zero outside."""
    out = x
    zero = np.zeros((), b.dtype(x).np)
    for i, axis in enumerate(axes):
        wanted = element(b, shape, i)
        have = extent(b, out, axis)
        # half the difference, rounded towards where the odd element belongs
        crop = b.div(b.max(b.sub(have, wanted), 0), 2)
        pad = b.div(b.max(b.sub(wanted, have), 0), 2)
        index = b.add(arange(b, wanted), b.sub(crop, pad))
        out = gather_or(b, out, index, axis, b.literal(zero))
    return out
