"""Tensors from nothing, from a number or from indices: fills, ranges, one-hot."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import DOUBLE, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import elements, filled, scalar
from mgx_mlir.frontends.helpers import (
    arange,
    axis_in,
    compare,
    convert,
    extent,
    single,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


@tf_op("Fill")
def fill(b: Builder, node: Node, dims: Value, value: Value) -> Value:
    """Import Fill."""
    return filled(b, elements(b, dims), single(b, value, "value"))


@tf_op("Range")
def range_op(b: Builder, node: Node, start: Value, limit: Value, delta: Value) -> Value:
    """Import Range, as a literal where its three numbers are known."""
    parts = [single(b, v, "Range input") for v in (start, limit, delta)]
    known = [b.const(v) for v in parts]
    if any(k is None for k in known):
        return b.dynamic_range(*parts)
    first, last, step = (k.reshape(()) for k in known if k is not None)
    if step == 0:
        raise ModelError("delta expected another number than 0")
    dtype = first.dtype
    hold = object if dtype.kind in "iu" else np.float64
    low, high, by = (np.asarray(v, hold).item() for v in (first, last, step))
    count = limits.steps(low, high, by)
    if dtype.kind in "iu":
        return b.literal((int(low) + np.arange(count, dtype=np.int64) * int(by)).astype(dtype))
    return b.literal((low + np.arange(count) * by).astype(dtype))


@tf_op("LinSpace")
def lin_space(b: Builder, node: Node, start: Value, stop: Value, num: Value) -> Value:
    """Import LinSpace: start + i (stop - start) / (num - 1); the last one is exactly `stop`."""
    dtype = b.dtype(start)
    [count] = elements(b, num)
    if isinstance(count, int) and count < 1:
        raise ModelError(f"num expected 1 or more, got {count}")
    low, high = (convert(b, single(b, v, "LinSpace input"), DOUBLE) for v in (start, stop))
    steps = b.max(b.sub(scalar(b, count), 1), 1)
    places = arange(b, count, DOUBLE)
    ratio = b.div(places, convert(b, steps, DOUBLE))
    found = b.add(low, b.mul(ratio, b.sub(high, low)))
    return convert(b, found, dtype)


@tf_op("OneHot")
def one_hot(
    b: Builder, node: Node, indices: Value, depth: Value, on: Value, off: Value, *, axis: int = -1
) -> Value:
    """Import OneHot; an index out of range, or negative, sets no element."""
    rank = len(b.dims(indices)) + 1
    at = axis_in(axis, rank)
    [count] = elements(b, depth)
    if isinstance(count, int) and count < 0:
        raise ModelError(f"depth expected 0 or more, got {count}")
    places = unsqueeze(b, arange(b, count), range(1, rank - at))
    hot = compare(b, "equal", unsqueeze(b, convert(b, indices, INT64), [at]), places)
    return b.where(hot, single(b, on, "on_value"), single(b, off, "off_value"))


@tf_op("InvertPermutation")
def invert_permutation(b: Builder, node: Node, x: Value) -> Value:
    """Import InvertPermutation: the index of i in x, for each i."""
    if len(b.dims(x)) != 1:
        raise ModelError(f"expected a vector, got rank {len(b.dims(x))}")
    known = b.const(x)
    if known is not None:
        return b.literal(np.argsort(known).astype(known.dtype))
    if b.dims(x)[0] == DYN:  # sorting: element i comes from the index of i
        count = b.reshape(extent(b, x, 0), dims=[1])
        _, places = b.topk(x, None, count, axis=0, largest=False)
        return convert(b, places, b.dtype(x))
    if b.dims(x)[0] == 0:
        return x
    n = b.dims(x)[0]
    index = convert(b, x, INT64)
    found = b.scatter_none(zeros(b, [n], INT64), index, arange(b, n), axis=0)
    return convert(b, found, b.dtype(x))
