"""Reshaping, joining and cutting tensors; dims may be computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import within
from mgx_mlir.frontends.extents import exact_quotient, extents, reshaped, times
from mgx_mlir.frontends.helpers import (
    arange,
    axes_in,
    axis_in,
    compare,
    extent,
    known_extent,
    require,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op, onnx_table
from mgx_mlir.frontends.runtime_axes import (
    distinct,
    element,
    gather_or,
    inserted_dims,
    kept_dims,
    length,
    strided_slice,
)
from mgx_mlir.frontends.shaping import (
    expand,
    reshape_by,
    reshape_known,
    slice_known,
    split_by,
    split_evenly,
    split_static,
    tile,
)
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

# ---- Reshape, Flatten, Squeeze, Unsqueeze ------------------------------------------------------


@onnx_op("Reshape", since=1)
def reshape_1(
    b: Builder,
    node: Node,
    x: Value,
    *,
    shape: Sequence[int] = (),
    consumed_inputs: Sequence[int] | None = None,
) -> Value:
    """Import Reshape of opsets 1 to 4, whose shape is an attribute."""
    return reshape_known(b, x, list(shape), False)


@onnx_op("Flatten", since=1)
def flatten(b: Builder, node: Node, x: Value, *, axis: int = 1) -> Value:
    """Import Flatten: a matrix of the dims before `axis` and those from it on."""
    rank = len(b.dims(x))
    if not -rank <= axis <= rank:
        raise ModelError(f"axis {axis} is out of range for rank {rank}")
    return b.flatten(x, axis=axis % rank if axis < 0 else axis)


@onnx_op("Squeeze", since=13)
def squeeze_op(b: Builder, node: Node, x: Value, axes: Value | None = None) -> Value:
    """Import Squeeze, also of axes known only at run time."""
    if axes is None:
        return squeeze_1(b, node, x)
    known = b.const(axes)
    if known is not None:
        return squeeze_1(b, node, x, axes=[int(a) for a in known.reshape(-1)])
    axes = distinct(b, axes, len(b.dims(x)), "axes that differ")
    return reshape_by(b, x, kept_dims(b, x, axes), True)


@onnx_op("Squeeze", since=1)
def squeeze_1(b: Builder, node: Node, x: Value, *, axes: Sequence[int] | None = None) -> Value:
    """Import Squeeze of opsets 1 to 12, whose axes are an attribute."""
    dims = b.dims(x)
    if axes is None:
        return _squeeze_ones(b, node, x)
    return squeeze(b, x, axes_in(axes, len(dims)))


def _squeeze_ones(b: Builder, node: Node, x: Value) -> Value:
    """Remove every 1. A dynamic dim stays, and is marked: it may be 1 at run time."""
    dims = b.dims(x)
    found = squeeze(b, x, [i for i, d in enumerate(dims) if d == 1])
    dynamic_dims = [i for i, d in enumerate(b.dims(found)) if d == DYN]
    return node.without_ones(found, dynamic_dims)


@onnx_op("Unsqueeze", since=13)
def unsqueeze_op(b: Builder, node: Node, x: Value, axes: Value) -> Value:
    """Import Unsqueeze, also of axes known only at run time."""
    known = b.const(axes)
    if known is not None:
        return unsqueeze_1(b, node, x, axes=[int(a) for a in known.reshape(-1)])
    rank = limits.rank(len(b.dims(x)) + length(b, axes, "axes"))
    axes = distinct(b, axes, rank, "axes that differ")
    return reshape_by(b, x, inserted_dims(b, x, axes), True)


@onnx_op("Unsqueeze", since=1)
def unsqueeze_1(b: Builder, node: Node, x: Value, *, axes: Sequence[int]) -> Value:
    """Import Unsqueeze of opsets 1 to 12, whose axes are an attribute."""
    found = unsqueeze(b, x, axes_in(axes, len(b.dims(x)) + len(axes)))
    return found


@onnx_op("Transpose", since=1)
def transpose_op(b: Builder, node: Node, x: Value, *, perm: Sequence[int] | None = None) -> Value:
    """Import Transpose; without `perm` the dims are reversed."""
    rank = len(b.dims(x))
    perm = list(range(rank))[::-1] if perm is None else list(perm)
    if sorted(perm) != list(range(rank)):
        raise ModelError(f"perm {perm} is no permutation of rank {rank}")
    return b.transpose(x, permutation=perm)


# ---- Shape, Size -------------------------------------------------------------------------------


@onnx_op("Shape", since=15)
def shape_op(b: Builder, node: Node, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    """Import Shape, of the dims from `start` to `end`."""
    return b.shape(x, start, end)


onnx_table({"Shape": lambda b, x: b.shape(x)})


@onnx_op("Size", since=1)
def size(b: Builder, node: Node, x: Value) -> Value:
    """Import Size: the number of elements."""
    dims = b.dims(x)
    if DYN not in dims:
        return b.literal(np.array(int(np.prod(dims, dtype=np.int64)), np.int64))
    return squeeze(b, b.reduce_prod(b.shape(x), axes=[0]), [0])


# ---- Concat, Split, Slice ----------------------------------------------------------------------


@onnx_op("Concat", since=4)
def concat_op(b: Builder, node: Node, *xs: Value, axis: int) -> Value:
    """Import Concat."""
    if not xs or any(x is None for x in xs):
        raise ModelError("expected at least one input, none of them absent")
    axis = axis_in(axis, len(b.dims(xs[0])))
    return xs[0] if len(xs) == 1 else b.concat(list(xs), axis=axis)


@onnx_op("Concat", since=1)
def concat_1(b: Builder, node: Node, *xs: Value, axis: int = 1) -> Value:
    """Import Concat of opsets 1 to 3, whose default axis is 1."""
    return concat_op(b, node, *xs, axis=axis)


@onnx_op("Split", since=18)
def split_op(
    b: Builder,
    node: Node,
    x: Value,
    split: Value | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
) -> Outputs:
    """Import Split, by sizes or into `num_outputs` parts, of which the last may be smaller.

    Without both there are as many parts as outputs.
    """
    axis = axis_in(axis, len(b.dims(x)))
    if split is not None and num_outputs is not None:
        raise ModelError("expected one of input 'split' and attribute 'num_outputs'")
    if split is None:
        count = node.output_count if num_outputs is None else num_outputs
        return _evenly(b, x, axis, int(count), node)
    return split_by(b, x, axis, split)


@onnx_op("Split", since=13)
def split_13(
    b: Builder, node: Node, x: Value, split: Value | None = None, *, axis: int = 0
) -> Outputs:
    """Import Split of opsets 13 to 17, by sizes or into equal parts."""
    axis = axis_in(axis, len(b.dims(x)))
    if split is not None:
        return split_by(b, x, axis, split)
    return _split_equal(b, node, x, axis)


def _split_equal(b: Builder, node: Node, x: Value, axis: int) -> tuple[Value, ...]:
    total, count = b.dims(x)[axis], node.output_count
    if total != DYN and total % max(count, 1):
        raise ModelError(f"dim {axis} ({total}) does not split into {count} equal parts")
    if total == DYN and count > 1:
        rest = b.mod(extent(b, x, axis), count)
        x = require(b, x, compare(b, "equal", rest, 0), f"dim {axis} in {count} equal parts")
    return _evenly(b, x, axis, count, node)


@onnx_op("Split", since=2)
def split_2(
    b: Builder, node: Node, x: Value, *, axis: int = 0, split: Sequence[int] | None = None
) -> Outputs:
    """Import Split of opsets 2 to 12, whose sizes are an attribute."""
    axis = axis_in(axis, len(b.dims(x)))
    if split is not None:
        return split_static(b, x, axis, split)
    return _split_equal(b, node, x, axis)


@onnx_op("Slice", since=10)
def slice_op(
    b: Builder,
    node: Node,
    x: Value,
    starts: Value,
    ends: Value,
    axes: Value | None = None,
    steps: Value | None = None,
    *,
    axes_: Sequence[int] | None = None,
) -> Value:
    """Import Slice: Python's bounds, except that a start before the first element means that
    element.

    Some exporters write `axes` as an attribute.
    """
    if axes_ is not None:
        if axes is not None:
            raise ModelError("expected one of input 'axes' and attribute 'axes'")
        axes = b.ints(list(axes_))
    known = [None if v is None else b.const(v) for v in (starts, ends, axes, steps)]
    given = (starts, ends, axes, steps)
    if all(v is None or k is not None for v, k in zip(given, known, strict=True)):
        lists = [None if k is None else [int(i) for i in k.reshape(-1)] for k in known]
        first, last = lists[0] or [], lists[1] or []
        return slice_known(b, x, first, last, lists[2], lists[3], clamp_start=True)
    return strided_slice(b, x, starts, ends, axes, steps, clamp_start=True)


@onnx_op("Slice", since=1)
def slice_1(
    b: Builder,
    node: Node,
    x: Value,
    *,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
) -> Value:
    """Import Slice of opsets 1 to 9, whose bounds are attributes, without steps."""
    return slice_known(b, x, list(starts), list(ends), None if axes is None else list(axes), None)


# ---- Expand, Tile ------------------------------------------------------------------------------


# ---- depth and space ---------------------------------------------------------------------------


@onnx_op("DepthToSpace", since=1)
def depth_to_space(b: Builder, node: Node, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """Import DepthToSpace: move blocks of channels to spatial positions, in DCR or CRD order."""
    n, c, h, w = _image(b, x)
    s = blocksize
    if s < 1:
        raise ModelError(f"blocksize expected at least 1, got {s}")
    blocks = exact_quotient(b, c, s * s)
    if mode == "DCR":
        split, permutation = [n, s, s, blocks, h, w], [0, 3, 4, 1, 5, 2]
    elif mode == "CRD":
        split, permutation = [n, blocks, s, s, h, w], [0, 1, 4, 2, 5, 3]
    else:
        raise ModelError(f"attribute 'mode' expected DCR or CRD, got {mode}")
    moved = transpose(b, reshaped(b, x, split), permutation)
    return reshaped(b, moved, [n, blocks, times(b, h, s), times(b, w, s)])


@onnx_op("SpaceToDepth", since=1)
def space_to_depth(b: Builder, node: Node, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """Import SpaceToDepth: move spatial blocks to channels."""
    n, c, h, w = _image(b, x)
    s = blocksize
    if s < 1:
        raise ModelError(f"blocksize expected at least 1, got {s}")
    if mode not in ("DCR", "CRD"):
        raise ModelError(f"attribute 'mode' expected DCR or CRD, got {mode}")
    rows, columns = exact_quotient(b, h, s), exact_quotient(b, w, s)
    permutation = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = transpose(b, reshaped(b, x, [n, c, rows, s, columns, s]), permutation)
    return reshaped(b, moved, [n, times(b, c, s * s), rows, columns])


def _image(b: Builder, x: Value) -> list[Any]:
    """Return the extents of an {N, C, H, W}."""
    if len(b.dims(x)) != 4:
        raise ModelError(f"expected an input {{N, C, H, W}}, got rank {len(b.dims(x))}")
    return extents(b, x)


@onnx_op("CenterCropPad", since=18)
def center_crop_pad(
    b: Builder, node: Node, x: Value, shape: Value, *, axes: Sequence[int] | None = None
) -> Value:
    """Import CenterCropPad: crop or zero-pad both sides; the odd element goes to the end."""
    dims = b.dims(x)
    axes = axes_in(list(range(len(dims))) if axes is None else axes, len(dims))
    shape = known_extent(b, within(b, shape, "shape", 0), 0, len(axes), "shape")
    if b.dims(shape) != (len(axes),):
        got = show_dims(b.dims(shape))
        raise ModelError(f"shape expected one extent for each of {len(axes)} axes, got dims {got}")
    known = b.const(shape)
    if known is None or any(dims[a] == DYN for a in axes):
        return _center_at_run_time(b, x, axes, shape)
    wanted = [int(d) for d in known]
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
    """Gather each axis at 0..n-1 plus half the difference, zero outside."""
    out = x
    zero = np.zeros((), b.dtype(x).np)
    for i, axis in enumerate(axes):
        wanted = element(b, shape, i)
        have = extent(b, out, axis)
        # half the difference, rounded so that the odd element is at the end
        crop = b.div(b.max(b.sub(have, wanted), 0), 2)
        pad = b.div(b.max(b.sub(wanted, have), 0), 2)
        index = b.add(arange(b, wanted), b.sub(crop, pad))
        out = gather_or(b, out, index, axis, b.literal(zero))
    return out


def _evenly(b: Builder, x: Value, axis: int, count: int, node: Node) -> tuple[Value, ...]:
    if node.output_count > count:
        raise ModelError(f"{node.output_count} outputs of {count} parts")
    limits.parts(count, "parts")
    return split_evenly(b, x, axis, count)


@onnx_op("Reshape", since=5)
def reshape_op(b: Builder, node: Node, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    """Import Reshape; the shape is an operand."""
    return reshape_by(b, x, shape, bool(allowzero))


onnx_table({"Tile": lambda b, x, repeats: tile(b, x, repeats)}, since=6)
onnx_table({"Expand": lambda b, x, shape: expand(b, x, shape)}, since=8)
