"""Gathers, scatters, one-hot and triangular masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import Dim, Sum, indices_within, within
from mgx_mlir.frontends.extents import extents, minus, scalar, spread
from mgx_mlir.frontends.helpers import (
    arange,
    axis_in,
    axis_range,
    compare,
    convert,
    extent,
    greater_equal,
    known_extent,
    less_equal,
    require,
    same_extent,
    single,
    slice_,
    squeeze,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op, onnx_table
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


@onnx_op("Gather", since=1)
def gather(b: Builder, node: Node, data: Value, indices: Value, *, axis: int = 0) -> Value:
    """Import Gather; indices may be negative."""
    axis = axis_in(axis, len(b.dims(data)))
    return b.gather(data, indices_within(b, indices, data, axis), axis=axis)


@onnx_op("GatherND", since=11)
def gather_nd(b: Builder, node: Node, data: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    """Import GatherND."""
    return b.gathernd(data, indices, batch_dims=batch_dims)


@onnx_op("GatherElements", since=11)
def gather_elements(b: Builder, node: Node, data: Value, indices: Value, *, axis: int = 0) -> Value:
    """Import GatherElements by gathernd: coordinates are the index at `axis`, and the position
    elsewhere.
    """
    rank = len(b.dims(data))
    if len(b.dims(indices)) != rank:
        raise ModelError(f"indices expected rank {rank}, got {len(b.dims(indices))}")
    axis = axis_in(axis, rank)
    index = convert(b, indices_within(b, indices, data, axis), INT64)
    for i in range(rank):
        if i != axis:
            fits = less_equal(b, extent(b, indices, i), extent(b, data, i))
            index = require(b, index, fits, f"indices of at most the data's extent along dim {i}")
    if rank == 1:
        return b.gather(data, index, axis=0)
    columns = []
    for i in range(rank):
        if i == axis:
            columns.append(unsqueeze(b, index, [rank]))
            continue
        place = unsqueeze(b, axis_range(b, indices, i), [k for k in range(rank) if k != i])
        columns.append(unsqueeze(b, b.broadcast(place, index)[0], [rank]))
    return b.gathernd(data, b.concat(columns, axis=rank))


_SCATTER = {"none": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(reduction: str) -> str:
    if reduction not in _SCATTER:
        raise ModelError(f"attribute 'reduction' has unknown value {reduction}")
    return _SCATTER[reduction]


@onnx_op("ScatterElements", since=11)
def scatter_elements(
    b: Builder,
    node: Node,
    data: Value,
    indices: Value,
    updates: Value,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Value:
    """Import ScatterElements, with its reductions."""
    axis = axis_in(axis, len(b.dims(data)))
    indices = indices_within(b, indices, data, axis)
    return b.op(f"scatter_{_reduction(reduction)}", data, indices, updates, axis=axis)


@onnx_op("Scatter", since=9)
def scatter(
    b: Builder, node: Node, data: Value, indices: Value, updates: Value, *, axis: int = 0
) -> Value:
    """Import Scatter, the former name of ScatterElements."""
    return scatter_elements(b, node, data, indices, updates, axis=axis)


@onnx_op("ScatterND", since=11)
def scatter_nd(
    b: Builder, node: Node, data: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Value:
    """Import ScatterND, with its reductions."""
    return b.op(f"scatternd_{_reduction(reduction)}", data, convert(b, indices, INT64), updates)


@onnx_op("TensorScatter", since=24)
def tensor_scatter(
    b: Builder,
    node: Node,
    past: Value,
    update: Value,
    write_indices: Value | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    """Import TensorScatter: write `update` into the cache at each entry's own position along
    `axis`.
    """
    rank = len(b.dims(past))
    if len(b.dims(update)) != rank:
        raise ModelError(f"update expected rank {rank}, got {len(b.dims(update))}")
    axis = axis_in(axis, rank)
    if axis == 0:
        raise ModelError("axis expected other than the batch axis 0")
    if mode not in ("linear", "circular"):
        raise ModelError(f"attribute 'mode' expected linear or circular, got {mode}")
    for i in range(rank):
        if i != axis:
            update = same_extent(b, update, i, past, i, f"an update of the cache's dim {i}")
    own = extents(b, update)
    size, count = extents(b, past)[axis], own[axis]
    free = minus(b, size, count)
    fits = greater_equal(b, scalar(b, free), 0)
    update = require(b, update, fits, f"an update no longer than the cache along dim {axis}")
    if write_indices is not None:
        parts = ((past, axis, 1), (update, axis, -1))
        below = Sum(1, parts, "the cache's length minus the update's, + 1")
        write_indices = within(
            b, write_indices, "write_indices", 0, None if mode == "circular" else below
        )
        told = "as many write_indices as batch entries"
        write_indices = same_extent(b, convert(b, write_indices, INT64), 0, past, 0, told)
    circular = mode == "circular" and write_indices is not None
    if rank == 4 and axis == 2 and (count == 1 or not circular):
        if write_indices is None:
            last = spread(b, scalar(b, minus(b, count, 1)), own[:1])
        else:
            last = (
                b.mod(write_indices, size) if circular else b.add(write_indices, minus(b, count, 1))
            )
        return b.concat_past_present(update, last, past)
    index = unsqueeze(b, arange(b, count), [0])
    if write_indices is not None:
        index = b.add(index, unsqueeze(b, write_indices, [1]))
    if circular:
        index = b.mod(index, size)
    index = unsqueeze(b, index, [i for i in range(1, rank) if i != axis])
    return b.scatter_none(past, spread(b, index, own), update, axis=axis)


@onnx_op("OneHot", since=9)
def one_hot(
    b: Builder, node: Node, indices: Value, depth: Value, values: Value, *, axis: int = -1
) -> Value:
    """Import OneHot: values[1] where the index (negative ones from the back) equals the position
    along `axis`.
    """
    rank = len(b.dims(indices)) + 1
    axis = axis_in(axis, rank)
    if len(b.dims(values)) != 1 or b.dims(values)[0] not in (2, DYN):
        raise ModelError(f"values expected two elements, got dims {show_dims(b.dims(values))}")
    values = known_extent(b, values, 0, 2, "values")
    index = convert(b, indices, INT64)
    depth = within(b, convert(b, single(b, depth, "depth"), INT64), "depth", 1)
    known = b.const(depth)
    n = depth if known is None else int(known)
    index = b.where(compare(b, "less", index, 0), b.add(index, n), index)
    places = unsqueeze(b, arange(b, n), range(1, rank - axis))
    hot = compare(b, "equal", unsqueeze(b, index, [axis]), places)
    off, on = (squeeze(b, slice_(b, values, [0], [i], [i + 1]), [0]) for i in (0, 1))
    return b.where(hot, on, off)


@onnx_op("Trilu", since=14)
def trilu(b: Builder, node: Node, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    """Import Trilu: keep elements with column - row >= k (upper) or <= k (lower)."""
    rank = len(b.dims(x))
    if rank < 2:
        raise ModelError(f"expected rank 2 or more, got {rank}")
    offset: Any = 0
    if k is not None:
        known = b.const(k)
        offset = single(b, k, "k") if known is None else int(known.reshape(-1)[0])
    rows, columns = b.dims(x)[-2:]
    if DYN not in (rows, columns) and isinstance(offset, int):
        limits.table((rows, columns), "a triangle")
        distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
        keep = b.literal(distance >= offset if upper else distance <= offset)
    else:
        distance = b.sub(axis_range(b, x, rank - 1), unsqueeze(b, axis_range(b, x, rank - 2), [1]))
        offset = offset if isinstance(offset, int) else convert(b, offset, INT64)
        keep = (greater_equal if upper else less_equal)(b, distance, offset)
    return b.where(keep, x, b.literal(np.zeros((), b.dtype(x).np)))


@onnx_op("ReverseSequence", since=10)
def reverse_sequence(
    b: Builder,
    node: Node,
    x: Value,
    lengths: Value | None = None,
    *,
    batch_axis: int = 1,
    sequence_lens: Sequence[int] | None = None,
    time_axis: int = 0,
) -> Value:
    """Import ReverseSequence: reverse the first length[b] steps; step t reads length - 1 - t.

    Some exporters write the lengths as an attribute.
    """
    if (lengths is None) == (sequence_lens is None):
        raise ModelError("expected one of input and attribute 'sequence_lens'")
    if lengths is None:
        lengths = b.ints(list(sequence_lens or ()))
    rank = len(b.dims(x))
    if {batch_axis, time_axis} != {0, 1} or rank < 2:
        raise ModelError(f"expected batch and time axes 0 and 1, got {batch_axis} and {time_axis}")
    steps = Dim(x, time_axis, "the number of steps", 1)
    lengths = convert(b, within(b, lengths, "sequence_lens", 0, steps), INT64)
    lengths = same_extent(b, lengths, 0, x, batch_axis, "as many sequence_lens as sequences")
    step = unsqueeze(b, axis_range(b, x, time_axis), [1 - time_axis])
    size = unsqueeze(b, lengths, [1 - batch_axis])
    back = b.sub(b.sub(size, 1), step)
    index = b.where(compare(b, "less", step, size), back, step)
    batch = unsqueeze(b, axis_range(b, x, batch_axis), [1 - batch_axis])
    index, batch = b.broadcast(index, batch)
    pair = (index, batch) if time_axis == 0 else (batch, index)
    return b.gathernd(x, b.concat([unsqueeze(b, v, [2]) for v in pair], axis=2))


onnx_table({"NonZero": lambda b, x: b.nonzero(x)}, since=9)


@onnx_op("Compress", since=9)
def compress(
    b: Builder, node: Node, x: Value, condition: Value, *, axis: int | None = None
) -> Value:
    """Import Compress: gather the elements where the condition is true; elements beyond its end are
    dropped.
    """
    if axis is None:
        x, axis = b.reshape(x, dims=[-1]), 0
    axis = axis_in(axis, len(b.dims(x)))
    fits = less_equal(b, extent(b, condition, 0), extent(b, x, axis))
    condition = require(b, condition, fits, f"a condition no longer than dim {axis} of the data")
    places = b.nonzero(condition)  # 1 x kept
    return b.gather(x, squeeze(b, places, [0]), axis=axis)


@onnx_op("ArrayFeatureExtractor", since=1, domain="ai.onnx.ml")
def array_feature_extractor(b: Builder, node: Node, x: Value, indices: Value) -> Value:
    """Import ArrayFeatureExtractor: gather along the last axis; the result has rank 2 or more."""
    if len(b.dims(x)) < 1:
        raise ModelError("expected rank 1 or more, got a scalar")
    columns = Dim(x, len(b.dims(x)) - 1, "the number of columns")
    flat = b.reshape(within(b, indices, "indices", 0, columns), dims=[-1])
    out = b.gather(x, flat, axis=len(b.dims(x)) - 1)
    return unsqueeze(b, out, [0]) if len(b.dims(x)) == 1 else out


onnx_table(
    {
        "Binarizer": lambda b, x, *, threshold=0.0: convert(
            b, compare(b, "greater", x, threshold), b.dtype(x)
        )
    },
    domain="ai.onnx.ml",
)
