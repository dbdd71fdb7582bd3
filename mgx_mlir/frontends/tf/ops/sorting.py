"""Sorting: largest elements, positions in sorted rows, distinct elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core.dtypes import DOUBLE, INT32, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.extents import Extent, elements, plus, scalar
from mgx_mlir.frontends.helpers import (
    axis_in,
    compare,
    convert,
    extent,
    greater_equal,
    less_equal,
    require,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def best_of(
    b: Builder, x: Value, k: Extent, kind: DType, largest: bool = True
) -> tuple[Value, Value]:
    """Return the k best of the last axis, best first, and their indices."""
    rank = len(b.dims(x))
    if rank == 0:
        raise ModelError("expected rank 1 or more, got a scalar")
    d = b.dims(x)[-1]
    if isinstance(k, int):
        if k < 0 or (d != DYN and k > d):
            raise ModelError(f"k ({k}) is out of range for {d} elements")
        values, places = b.topk(x, k=k, axis=rank - 1, largest=largest)
    else:
        count, most = b.reshape(scalar(b, k), dims=[1]), extent(b, x, rank - 1)
        inside = b.logical_and(greater_equal(b, count, 0), less_equal(b, count, most))
        count = require(b, count, inside, "k of 0 to the extent of the last axis")
        values, places = b.topk(x, None, count, axis=rank - 1, largest=largest)
    return values, convert(b, places, kind)


@tf_op("TopK", outputs=("values", "indices"))
def top_k(b: Builder, node: Node, x: Value, *, k: int, sorted: bool = True) -> Outputs:
    """Import TopK, always sorted: unsorted results may have any order."""
    return best_of(b, x, k, INT32)


@tf_op("TopKV2", outputs=("values", "indices"))
def top_k_v2(
    b: Builder, node: Node, x: Value, k: Value, *, sorted: bool = True, index_type: DType = INT32
) -> Outputs:
    """Import TopKV2, along the last axis."""
    [count] = elements(b, k)
    return best_of(b, x, count, index_type)


@tf_op("NthElement")
def nth_element(b: Builder, node: Node, x: Value, n: Value, *, reverse: bool = False) -> Value:
    """Import NthElement: the n-th smallest, or with `reverse` the n-th largest."""
    [place] = elements(b, n)
    values, _ = best_of(b, x, plus(b, place, 1), INT32, largest=reverse)
    return b.gather(values, scalar(b, place), axis=len(b.dims(x)) - 1)


def _in_top(b: Builder, x: Value, targets: Value, k: Extent) -> Value:
    """Return whether fewer than k classes are better than the target, which must be finite and
    exist.
    """
    classes = extent(b, x, 1)
    at = convert(b, targets, INT64)
    inside = b.logical_and(greater_equal(b, at, 0), compare(b, "less", at, classes))
    safe = b.max(b.min(at, b.sub(classes, 1)), 0)
    own = b.gathernd(x, unsqueeze(b, safe, [1]), batch_dims=1)
    better = convert(b, compare(b, "greater", x, unsqueeze(b, own, [1])), INT64)
    count = squeeze(b, b.reduce_sum(better, axes=[1]), [1])
    fits = compare(b, "less", count, scalar(b, k))
    finite = b.not_(b.logical_or(b.isinf(own), b.isnan(own)))
    return b.logical_and(b.logical_and(fits, finite), inside)


@tf_op("InTopK")
def in_top_k(b: Builder, node: Node, x: Value, targets: Value, *, k: int) -> Value:
    """Import InTopK: whether a row's target is among its k largest."""
    return _in_top(b, x, targets, k)


@tf_op("InTopKV2")
def in_top_k_v2(b: Builder, node: Node, x: Value, targets: Value, k: Value) -> Value:
    """Import InTopKV2, whose k is an operand."""
    [count] = elements(b, k)
    return _in_top(b, x, targets, count)


# ---- positions in sorted rows ------------------------------------------------------------------


def _register_bound(name: str, before: Callable[..., Value]) -> None:
    @tf_op(name)
    def bound(
        b: Builder, node: Node, rows: Value, values: Value, *, out_type: DType = INT32
    ) -> Value:
        """Import LowerBound and UpperBound: the number of row elements before each value."""
        if len(b.dims(rows)) != 2 or len(b.dims(values)) != 2:
            raise ModelError("expected matrices")
        hits = before(b, unsqueeze(b, rows, [1]), unsqueeze(b, values, [2]))
        count = b.reduce_sum(convert(b, hits, INT64), axes=[2])
        return convert(b, squeeze(b, count, [2]), out_type)


_register_bound("LowerBound", lambda b, row, value: compare(b, "less", row, value))
_register_bound("UpperBound", less_equal)


@tf_op("Bucketize")
def bucketize(b: Builder, node: Node, x: Value, *, boundaries: Sequence[float]) -> Value:
    """Import Bucketize: the number of boundaries not above the element; all of them for NaN."""
    limits = np.array(list(boundaries), np.float64)
    if (np.diff(limits) < 0).any():
        raise ModelError("boundaries expected ascending numbers")
    rank = len(b.dims(x))
    value = unsqueeze(b, convert(b, x, DOUBLE), [rank])
    hits = b.not_(compare(b, "less", value, b.literal(limits)))
    return squeeze(b, b.reduce_sum(convert(b, hits, INT32), axes=[rank]), [rank])


# ---- distinct elements, true elements ----------------------------------------------------------


def _distinct(b: Builder, x: Value, out_idx: DType, axis: int | None) -> tuple[Value, Value, Value]:
    """Return values in order of first occurrence, each element's index among them, and the
    counts.
    """
    kind = out_idx
    if axis is None:
        values, _, inverse, counts = b.unique(x, sorted=False)
    else:
        values, _, inverse, counts = b.unique(x, axis=axis, sorted=False)
    return values, convert(b, inverse, kind), convert(b, counts, kind)


@tf_op("Unique", outputs=("y", "idx"))
def unique(b: Builder, node: Node, x: Value, *, out_idx: DType = INT32) -> Outputs:
    """Import Unique: the distinct values, and the index of each input among them."""
    return _distinct(b, x, out_idx, None)[:2]


@tf_op("UniqueWithCounts", outputs=("y", "idx", "count"))
def unique_with_counts(b: Builder, node: Node, x: Value, *, out_idx: DType = INT32) -> Outputs:
    """Import UniqueWithCounts: Unique, and how often each value occurs."""
    return _distinct(b, x, out_idx, None)


def _axis(node: Node, axis: Value, rank: int) -> int | None:
    found = node.ints(axis, "axis")
    if len(found) > 1:
        raise ModelError(f"axis expected at most one number, got {found}")
    if not found:
        if rank != 1:
            raise ModelError("expected a vector where no axis is given")
        return None
    return None if rank == 1 else axis_in(found[0], rank)


@tf_op("UniqueV2", outputs=("y", "idx"))
def unique_v2(b: Builder, node: Node, x: Value, axis: Value, *, out_idx: DType = INT32) -> Outputs:
    """Import UniqueV2: Unique along an axis."""
    return _distinct(b, x, out_idx, _axis(node, axis, len(b.dims(x))))[:2]


@tf_op("UniqueWithCountsV2", outputs=("y", "idx", "count"))
def unique_with_counts_v2(
    b: Builder, node: Node, x: Value, axis: Value, *, out_idx: DType = INT32
) -> Outputs:
    """Import UniqueWithCountsV2: UniqueWithCounts along an axis."""
    return _distinct(b, x, out_idx, _axis(node, axis, len(b.dims(x))))


@tf_op("Where")
def where(b: Builder, node: Node, condition: Value) -> Value:
    """Import Where: the indices of nonzero elements, one row each."""
    return transpose(b, b.nonzero(condition), [1, 0])


@tf_op("ListDiff", outputs=("out", "idx"))
def list_diff(b: Builder, node: Node, x: Value, y: Value, *, out_idx: DType = INT32) -> Outputs:
    """Import ListDiff: the elements of x that are not in y, and their indices."""
    hits = compare(b, "equal", unsqueeze(b, x, [1]), unsqueeze(b, y, [0]))
    missing = b.not_(squeeze(b, b.reduce_any(hits, axes=[1]), [1]))
    places = squeeze(b, b.nonzero(missing), [0])
    return b.gather(x, places, axis=0), convert(b, places, out_idx)
