"""Parts of tensors: slices, splits, reversals; and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import (
    Extent,
    elements,
    extents,
    known,
    plus,
    reshaped,
    scalar,
    vector,
)
from mgx_mlir.frontends.helpers import (
    arange,
    axes_in,
    axis_in,
    axis_range,
    compare,
    concat,
    convert,
    extent,
    greater_equal,
    known_extent,
    less_equal,
    require,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import pad_at_run_time, strided_slice
from mgx_mlir.frontends.shaping import slice_known, split_by, split_evenly, split_static
from mgx_mlir.frontends.tf.layout import check_rank, same_pads
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

FAR = 2**62  # larger than every extent


@dataclass(frozen=True)
class _Cut:
    """Part of StridedSlice for one input axis; `None`: the whole axis."""

    axis: int
    begin: Extent
    end: Extent
    step: int
    shrink: bool


def _bit(mask: int, i: int) -> bool:
    return bool(mask >> i & 1)


@dataclass(frozen=True)
class _Masks:
    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int


def _plan(
    rank: int, begins: list[Extent], ends: list[Extent], steps: list[Extent], m: _Masks
) -> tuple[list[_Cut], list[int | None]]:
    """Return the slices, and the result's axes: an axis of the input, or None for a new one."""
    n = len(begins)
    dots = [i for i in range(n) if _bit(m.ellipsis, i)]
    if len(dots) > 1:
        raise ModelError("more than one ellipsis")
    named = [i for i in range(n) if not _bit(m.ellipsis, i) and not _bit(m.new_axis, i)]
    if len(named) > rank:
        raise ModelError(f"{len(named)} indices for rank {rank}")
    cuts: list[_Cut] = []
    result: list[int | None] = []
    axis = 0
    for i in range(n):
        if _bit(m.ellipsis, i):
            left = rank - sum(k > i for k in named)
            result += range(axis, left)
            axis = left
        elif _bit(m.new_axis, i):
            result.append(None)
        else:
            step = steps[i]
            if not isinstance(step, int):
                raise NotSupported("'strides' computed at run time")
            if step == 0:
                raise ModelError("strides expected other numbers than 0")
            shrink = _bit(m.shrink, i)
            if shrink and step < 0:
                raise ModelError("shrink_axis_mask needs a positive stride")
            begin, end = begins[i], ends[i]
            if not shrink and _bit(m.begin, i):
                begin = 0 if step > 0 else FAR
            if _bit(m.end, i):
                end = FAR if step > 0 else -FAR
            cuts.append(_Cut(axis, begin, end, step, shrink))
            if not shrink:
                result.append(axis)
            axis += 1
    result += range(axis, rank)
    return cuts, result


@tf_op("StridedSlice")
def strided_slice_op(
    b: Builder,
    node: Node,
    x: Value,
    begin: Value,
    end: Value,
    strides: Value,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Value:
    """Import StridedSlice, with its five masks."""
    masks = _Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    begins = elements(b, begin)
    n = len(begins)
    ends, steps = elements(b, end, n), elements(b, strides, n)
    rank = len(b.dims(x))
    cuts, result = _plan(rank, begins, ends, steps, masks)
    shrunk = [c for c in cuts if c.shrink]
    open_ends = [c for c in cuts if not c.shrink and not _known(c)]
    for c in open_ends:
        steps_of = None if c.step == 1 else b.ints([c.step])
        x = strided_slice(
            b, x, vector(b, [c.begin]), vector(b, [c.end]), b.ints([c.axis]), steps_of
        )
    known = [c for c in cuts if not c.shrink and _known(c)]
    at = [
        (c.axis, *_single(c.begin, b.dims(x)[c.axis]), 1)
        for c in shrunk
        if isinstance(c.begin, int)
    ]
    at += [(c.axis, c.begin, c.end, c.step) for c in known]
    if at:
        axes, starts, stops, jumps = (list(v) for v in zip(*at, strict=True))
        x = slice_known(b, x, starts, stops, axes, jumps)
    kept = list(range(rank))
    for c in reversed(shrunk):  # the last axis first, so that earlier axes keep their numbers
        if isinstance(c.begin, int):
            x = squeeze(b, x, [kept.index(c.axis)])
        else:
            x = b.gather(x, c.begin, axis=kept.index(c.axis))
        kept.remove(c.axis)
    return unsqueeze(b, x, [i for i, axis in enumerate(result) if axis is None])


def _known(c: _Cut) -> bool:
    return isinstance(c.begin, int) and isinstance(c.end, int)


def _single(begin: int, d: int) -> tuple[int, int]:
    """Return the bounds of one element."""
    if d != DYN and not -d <= begin < d:
        raise ModelError(f"index {begin} is out of range for an extent of {d}")
    return begin, begin + 1 if begin != -1 else FAR


@tf_op("Slice")
def slice_op(b: Builder, node: Node, x: Value, begin: Value, size: Value) -> Value:
    """Import Slice: `size` elements from `begin`; -1 takes all remaining ones."""
    rank = len(b.dims(x))
    if rank == 0:
        return x
    begins, sizes = elements(b, begin, rank), elements(b, size, rank)
    begins = [
        known(b, require(b, v, greater_equal(b, v, 0), "begin of 0 or more"))
        for v in (scalar(b, first) for first in begins)
    ]
    ends: list[Extent] = []
    for first, count, d in zip(begins, sizes, b.dims(x), strict=True):
        if isinstance(count, int):
            ends.append(FAR if count < 0 else plus(b, first, count))
            if isinstance(ends[-1], int) and d != DYN and count >= 0 and ends[-1] > d:
                raise ModelError(f"begin {first} and size {count} exceed an extent of {d}")
        else:
            all_left = compare(b, "less", count, 0)
            ends.append(b.where(all_left, FAR, plus(b, first, count)))
    fixed = {
        i: (p, q)
        for i, (p, q) in enumerate(zip(begins, ends, strict=True))
        if isinstance(p, int) and isinstance(q, int)
    }
    cut = [i for i, (p, q) in fixed.items() if p or q != FAR]
    if cut:
        x = slice_known(b, x, [fixed[i][0] for i in cut], [fixed[i][1] for i in cut], cut, None)
    left = [i for i in range(rank) if i not in fixed]
    if not left:
        return x
    starts, stops = vector(b, [begins[i] for i in left]), vector(b, [ends[i] for i in left])
    x = b.op("slice", x, starts, stops, axes=left)
    stated = {i: sizes[i] for i in left}
    return _stated(b, x, {i: n for i, n in stated.items() if isinstance(n, int) and n >= 0})


def _stated(b: Builder, x: Value, sizes: dict[int, int]) -> Value:
    """Return `x` with the extents that are known although it was sliced at run time."""
    if not sizes:
        return x
    dims: list[Extent] = [sizes.get(i, d) for i, d in enumerate(b.dims(x))]
    if dims.count(DYN) <= 1:
        return b.reshape(x, dims=[-1 if d == DYN else d for d in dims])
    parts = [extent(b, x, i) if d == DYN else d for i, d in enumerate(dims)]
    return reshaped(b, x, parts)


# ---- splits ------------------------------------------------------------------------------------


@tf_op("Split")
def split(b: Builder, node: Node, axis: Value, x: Value, *, num_split: int) -> Outputs:
    """Import Split into equal parts."""
    dims = b.dims(x)
    at = axis_in(node.ints(axis, "split_dim")[0], len(dims))
    if num_split < 1 or (dims[at] != DYN and dims[at] % num_split):
        raise ModelError(f"dim {at} ({dims[at]}) does not split into {num_split} equal parts")
    limits.parts(num_split, "parts")
    if dims[at] == DYN:
        return split_evenly(b, x, at, num_split)
    return split_static(b, x, at, [dims[at] // num_split] * num_split)


def _rest_stated(b: Builder, sizes: Value, total: Value) -> Value:
    """Return dynamic sizes with the one that is -1 replaced by what the others leave."""
    rest = b.sub(total, b.add(b.reduce_sum(sizes, axes=[0]), 1))
    return b.where(compare(b, "equal", sizes, -1), rest, sizes)


@tf_op("SplitV")
def split_v(
    b: Builder, node: Node, x: Value, sizes: Value, axis: Value, *, num_split: int
) -> Outputs:
    """Import SplitV by sizes, one of which may be -1, or by dynamic sizes."""
    dims = b.dims(x)
    at = axis_in(node.ints(axis, "split_dim")[0], len(dims))
    known = b.const(sizes)
    if known is None:
        return split_by(b, x, at, _rest_stated(b, convert(b, sizes, INT64), extent(b, x, at)))
    wanted = [int(s) for s in known.reshape(-1)]
    if len(wanted) != num_split or wanted.count(-1) > 1:
        raise ModelError(f"sizes {wanted} expected {num_split} numbers, at most one of them -1")
    if -1 in wanted and dims[at] != DYN:
        wanted[wanted.index(-1)] = dims[at] - sum(s for s in wanted if s != -1)
    if -1 not in wanted:
        return split_static(b, x, at, wanted)
    out, place = [], 0
    behind = sum(s for s in wanted[wanted.index(-1) + 1 :])
    for s in wanted:
        if s == -1:
            end = -behind if behind else FAR
            out.append(b.slice(x, axes=[at], starts=[place], ends=[end]))
            place = -behind
        else:
            end = place + s
            stop = FAR if place < 0 and end == 0 else end
            piece = b.slice(x, axes=[at], starts=[place], ends=[stop])
            out.append(_stated(b, piece, {at: s}))
            place = end
    return tuple(out)


@tf_op("Unpack")
def unpack(b: Builder, node: Node, x: Value, *, num: int, axis: int = 0) -> Outputs:
    """Import Unpack: the slices along an axis."""
    dims = b.dims(x)
    at = axis_in(axis, len(dims))
    if dims[at] not in (DYN, num):
        raise ModelError(f"dim {at} ({dims[at]}) expected {num} elements")
    limits.parts(num, "parts")
    return tuple(
        squeeze(b, slice_known(b, x, [i], [i + 1], [at], None), [at])
        if dims[at] != DYN
        else b.gather(x, b.literal(i, INT64), axis=at)
        for i in range(num)
    )


# ---- other orders ------------------------------------------------------------------------------


@tf_op("ReverseV2")
def reverse_v2(b: Builder, node: Node, x: Value, axes: Value) -> Value:
    """Import ReverseV2: reverse along static axes."""
    return _flipped(b, x, axes_in(node.ints(axes, "axis"), len(b.dims(x))))


@tf_op("Reverse")
def reverse(b: Builder, node: Node, x: Value, chosen: Value) -> Value:
    """Import Reverse: reverse along the axes whose flag is set."""
    return _flipped(b, x, [i for i, c in enumerate(node.const(chosen, "dims")) if c])


def _flipped(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    return b.reverse(x, axes=list(axes)) if axes else x


@tf_op("ReverseSequence")
def reverse_sequence(
    b: Builder, node: Node, x: Value, lengths: Value, *, seq_dim: int, batch_dim: int = 0
) -> Value:
    """Import ReverseSequence: reverse the first length[b] steps; step t reads length - 1 - t."""
    rank = len(b.dims(x))
    batch, time = axis_in(batch_dim, rank), axis_in(seq_dim, rank)
    if batch == time:
        raise ModelError("expected different axes for batch and sequence")
    order = [batch, time, *(i for i in range(rank) if i not in (batch, time))]
    moved = transpose(b, x, order)
    step = unsqueeze(b, axis_range(b, moved, 1), [0])
    size = unsqueeze(b, convert(b, lengths, INT64), [1])
    back = b.sub(b.sub(size, 1), step)
    index = b.where(compare(b, "less", step, size), back, step)
    found = b.gathernd(moved, unsqueeze(b, index, [2]), batch_dims=1)
    return transpose(b, found, [order.index(i) for i in range(rank)])


@tf_op("Roll")
def roll(b: Builder, node: Node, x: Value, shift: Value, axis: Value) -> Value:
    """Import Roll: element i moves to i + shift, modulo the extent."""
    rank = len(b.dims(x))
    axes = [axis_in(a, rank) for a in node.ints(axis, "axis")]
    shifts = elements(b, shift, len(axes))
    for at in dict.fromkeys(axes):
        total: Extent = 0
        for a, s in zip(axes, shifts, strict=True):
            total = plus(b, total, s) if a == at else total
        d = b.dims(x)[at]
        if isinstance(total, int) and d != DYN:
            cut = -total % d if d else 0
            if cut:
                parts = [slice_(b, x, [at], [cut], [d]), slice_(b, x, [at], [0], [cut])]
                x = concat(b, parts, at)
        else:
            back = b.sub(axis_range(b, x, at), total)
            x = b.gather(x, b.mod(back, extent(b, x, at)), axis=at)
    return x


# ---- padding -----------------------------------------------------------------------------------


def _amounts(b: Builder, x: Value, paddings: Value) -> list[tuple[Extent, Extent]]:
    rank = len(b.dims(x))
    if len(b.dims(paddings)) == 2:
        for axis, wanted in ((0, rank), (1, 2)):
            paddings = known_extent(b, paddings, axis, wanted, "paddings")
    if b.dims(paddings) != (rank, 2):
        raise ModelError(f"paddings expected dims {[rank, 2]}, got {show_dims(b.dims(paddings))}")
    flat = elements(b, b.reshape(paddings, dims=[2 * rank]))
    if any(isinstance(p, int) and p < 0 for p in flat):
        raise ModelError("paddings expected no negative numbers")
    return [(flat[2 * i], flat[2 * i + 1]) for i in range(rank)]


def _numbers(pairs: Sequence[tuple[Extent, Extent]]) -> bool:
    return all(isinstance(p, int) for pair in pairs for p in pair)


@tf_op("Pad")
def pad(b: Builder, node: Node, x: Value, paddings: Value) -> Value:
    """Import Pad, with zeros."""
    return padded(b, x, _amounts(b, x, paddings), b.literal(np.zeros((), b.dtype(x).np)))


@tf_op("PadV2")
def pad_v2(b: Builder, node: Node, x: Value, paddings: Value, value: Value) -> Value:
    """Import PadV2, with a given value."""
    return padded(b, x, _amounts(b, x, paddings), value)


def padded(b: Builder, x: Value, pairs: Sequence[tuple[Extent, Extent]], value: Value) -> Value:
    """Pad by known amounts as one op if f64 holds the value; else one gather per axis."""
    if not pairs:
        return x
    number = b.const(value)
    if _numbers(pairs) and number is not None:
        n = float(number.reshape(()))
        if not b.dtype(x).is_integer or abs(n) < 2**53:
            return b.pad(x, pads=[p for p, _ in pairs] + [q for _, q in pairs], value=n)
    for axis, (p, q) in enumerate(pairs):
        if p == 0 and q == 0:
            continue
        low, high = (b.literal(v, INT64) if isinstance(v, int) else v for v in (p, q))
        x = pad_at_run_time(b, x, low, high, axis, "constant", value)
    return x


def around_windows(
    b: Builder,
    x: Value,
    padding: str,
    window: Sequence[int],
    stride: Sequence[int],
    value: float = 0,
) -> Value:
    """Pad `x` {N, s.., C} with `value` for windows with `padding`, SAME or VALID.

    An extent too small for a window gives an empty result, as in TensorFlow, if the output size
    rounds to 0. A smaller extent is an error, at run time if it is dynamic.
    """
    dims = extents(b, x)[1:-1]
    check_rank(dims, len(window))
    if padding == "VALID":
        for i, (d, w, s) in enumerate(zip(dims, window, stride, strict=True)):
            least = w - 2 * s + 1
            fits = greater_equal(b, scalar(b, d), least)
            told = f"at least {least} elements along dim {i + 1}, for a window of {w}"
            x = require(b, x, fits, told)
        return x
    if padding != "SAME":
        raise ModelError(f"attribute 'padding' expected SAME or VALID, got {padding}")
    begin, end = same_pads(b, dims, window, stride)
    pairs = [(0, 0), *zip(begin, end, strict=True), (0, 0)]
    return padded(b, x, pairs, b.literal(np.array(value, b.dtype(x).np)))


@tf_op("MirrorPad")
def mirror_pad(b: Builder, node: Node, x: Value, paddings: Value, *, mode: str) -> Value:
    """Import MirrorPad: REFLECT does not repeat the border, SYMMETRIC does."""
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ModelError(f"attribute 'mode' expected REFLECT or SYMMETRIC, got {mode}")
    pairs = _amounts(b, x, paddings)
    dims = b.dims(x)
    if mode == "REFLECT" and _numbers(pairs) and DYN not in dims:
        return b.pad(x, pads=[p for p, _ in pairs] + [q for _, q in pairs], mode="reflect")
    for axis, (p, q) in enumerate(pairs):
        if p == 0 and q == 0:
            continue
        low, high = (b.literal(v, INT64) if isinstance(v, int) else v for v in (p, q))
        if mode == "REFLECT":
            x = pad_at_run_time(b, x, low, high, axis, "reflect", None)
            continue
        d = extent(b, x, axis)
        x = require(b, x, less_equal(b, b.max(low, high), d), f"paddings of up to dim {axis}")
        index = b.mod(b.sub(arange(b, b.add(b.add(d, low), high)), low), b.mul(d, 2))
        index = b.min(index, b.sub(b.sub(b.mul(d, 2), 1), index))
        known = b.const(index)
        x = b.gather(x, index if known is None else b.literal(known), axis=axis)
    return x
