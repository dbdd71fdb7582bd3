"""Reductions of rows by segment, counts of values, and cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.extents import (
    Extent,
    elements,
    extents,
    filled,
    plus,
    product,
    reshaped,
    zeros_of,
)
from mgx_mlir.frontends.helpers import (
    arange,
    axis_in,
    axis_range,
    compare,
    concat,
    convert,
    same_extent,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.reductions import log_sum_exp, running_product
from mgx_mlir.frontends.runtime_axes import flags
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.indexing import scattered
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

FAR = 2**31 - 1  # larger than every extent
_HOW = {"Sum": "add", "Prod": "mul", "Max": "max", "Min": "min", "Mean": "add"}


def _start(dtype: DType, name: str) -> float | np.number:
    """Return the initial value of a reduction: finite for extremes, as in TensorFlow."""
    if name in ("Sum", "Mean"):
        return 0
    if name == "Prod":
        return 1
    info = np.iinfo(dtype.np) if dtype.is_integer else ml_dtypes.finfo(dtype.np)
    return info.min if name == "Max" else info.max


def _by_number(
    b: Builder, name: str, x: Value, ids: Value, rows: Extent, start: float | np.number, spare: bool
) -> Value:
    """Reduce rows of x by segment ids; with `spare`, negative ids go to an additional row."""
    total = plus(b, rows, 1) if spare else rows
    if spare:
        ids = b.where(compare(b, "less", ids, 0), rows, ids)
    table = zeros_of(b, [total, *extents(b, x)[1:]], b.dtype(x), start)
    found = scattered(b, _HOW[name], table, unsqueeze(b, ids, [1]), x)
    if not spare:
        return found
    if isinstance(rows, int):
        return b.slice(found, axes=[0], starts=[0], ends=[rows])
    return b.slice(found, axes=[0], starts=[0], ends=[-1])


def rows_of(b: Builder, ids: Value) -> Extent:
    """Return the last of sorted ids, plus one."""
    known = b.const(ids)
    if known is not None:
        return int(known[-1]) + 1 if len(known) else 0
    if b.dims(ids) == (0,):
        return 0
    last = b.slice(ids, axes=[0], starts=[-1], ends=[FAR])
    if b.dims(ids)[0] == DYN:  # no ids at run time: no rows
        last = b.reduce_max(concat(b, [b.literal([-1], INT64), last], 0), axes=[0])
    return plus(b, squeeze(b, last, [0]), 1)


def _register_segment(name: str) -> None:
    @tf_op(f"Segment{name}")
    def segment(b: Builder, node: Node, x: Value, ids: Value) -> Value:
        """Import segment reductions of sorted ids; an empty segment gives 0 (1 for a product)."""
        ids = convert(b, ids, INT64)
        rows = rows_of(b, ids)
        dtype = b.dtype(x)
        kind = wide(dtype)
        x = convert(b, x, kind)
        out = _by_number(b, name, x, ids, rows, _start(kind, name), False)
        if name in ("Max", "Min", "Mean"):
            ones = filled(b, extents(b, ids), b.literal(1, INT64))
            count = _by_number(b, "Sum", ones, ids, rows, 0, False)
            count = unsqueeze(b, count, range(1, len(b.dims(x))))
            if name == "Mean":
                out = b.div(out, convert(b, b.max(count, 1), kind))
            else:
                out = b.where(compare(b, "greater", count, 0), out, 0)
        return convert(b, out, dtype)


def _register_unsorted(name: str) -> None:
    @tf_op(f"UnsortedSegment{name}")
    def unsorted_segment(b: Builder, node: Node, x: Value, ids: Value, num: Value) -> Value:
        """Import unsorted segment reductions, with ids of any order and rank; negative ones drop
        their row.
        """
        [rows] = elements(b, num)
        lead = len(b.dims(ids))
        if lead > len(b.dims(x)):
            raise ModelError(f"segment_ids of rank {lead} for data of rank {len(b.dims(x))}")
        ids = convert(b, ids, INT64)
        if lead != 1:
            for i in range(lead):
                ids = same_extent(b, ids, i, x, i, f"segment_ids with dim {i} of the data")
            ids, own = b.reshape(ids, dims=[-1]), extents(b, x)
            x = reshaped(b, x, [product(b, own[:lead]), *own[lead:]])
        return _by_number(b, name, x, ids, rows, _start(b.dtype(x), name), True)


for _name in ("Sum", "Mean", "Prod", "Max", "Min"):
    _register_segment(_name)
    if _name != "Mean":
        _register_unsorted(_name)


# ---- counts ------------------------------------------------------------------------------------


def _counts(
    b: Builder, values: Value, size: Value, weights: Value, binary: bool, kind: DType
) -> Value:
    """Return the count of each number below `size`, or the sum of its weights."""
    [n] = elements(b, size)
    index = unsqueeze(b, convert(b, values, INT64), [len(b.dims(values))])
    hits = compare(b, "equal", index, arange(b, n))  # .., values, numbers
    axis = len(b.dims(values)) - 1
    if binary:
        found = b.reduce_any(hits, axes=[axis])
    elif b.dims(weights) == (0,):
        found = b.reduce_sum(convert(b, hits, kind), axes=[axis])
    else:
        amount = unsqueeze(b, weights, [len(b.dims(weights))])
        found = b.reduce_sum(b.where(hits, amount, 0), axes=[axis])
    return convert(b, squeeze(b, found, [axis]), kind)


@tf_op("Bincount")
def bincount(b: Builder, node: Node, values: Value, size: Value, weights: Value) -> Value:
    """Import Bincount: the number, or sum of weights, of each value."""
    flat = values if len(b.dims(values)) == 1 else b.reshape(values, dims=[-1])
    if len(b.dims(weights)) > 1:
        weights = b.reshape(weights, dims=[-1])
    return _counts(b, flat, size, weights, False, b.dtype(weights))


@tf_op("DenseBincount")
def dense_bincount(
    b: Builder,
    node: Node,
    values: Value,
    size: Value,
    weights: Value,
    *,
    binary_output: bool = False,
) -> Value:
    """Import DenseBincount: Bincount by rows; `binary_output` gives 1 for each value that
    occurs.
    """
    if len(b.dims(values)) not in (1, 2):
        raise ModelError(f"expected rank 1 or 2, got {len(b.dims(values))}")
    return _counts(b, values, size, weights, binary_output, b.dtype(weights))


# ---- running sums and products -----------------------------------------------------------------


def _register_scan(name: str, along: Callable[..., Value]) -> None:
    @tf_op(name)
    def scan(
        b: Builder,
        node: Node,
        x: Value,
        axis: Value,
        *,
        exclusive: bool = False,
        reverse: bool = False,
    ) -> Value:
        rank = len(b.dims(x))
        known = b.const(axis)
        dtype = b.dtype(x)
        v = convert(b, x, wide(dtype))
        if known is not None:
            at = axis_in(int(known.reshape(())), rank)
            return convert(b, along(b, v, at, exclusive, reverse), dtype)
        wanted = flags(b, b.reshape(convert(b, axis, INT64), dims=[1]), rank)
        out = v
        for i in range(rank):
            flag = squeeze(b, b.slice(wanted, axes=[0], starts=[i], ends=[i + 1]), [0])
            out = b.where(flag, along(b, v, i, exclusive, reverse), out)
        return convert(b, out, dtype)


def _running_sum(b: Builder, x: Value, at: int, exclusive: bool, reverse: bool) -> Value:
    return b.prefix_scan_sum(x, axis=at, exclusive=exclusive, reverse=reverse)


def _running_log_sum(b: Builder, x: Value, at: int, exclusive: bool, reverse: bool) -> Value:
    """Return the log of the cumulative sum of exp, by a table that is reduced."""
    rank = len(b.dims(x))
    source = axis_range(b, x, at)
    row, column = unsqueeze(b, source, [0]), unsqueeze(b, source, [1])
    table = compare(b, "greater", row, column) if reverse else compare(b, "less", row, column)
    if not exclusive:
        table = b.logical_or(table, compare(b, "equal", row, column))
    table = unsqueeze(b, table, range(2, rank - at + 1))
    nothing = b.literal(np.array(-np.inf, b.dtype(x).np))
    chosen = b.where(table, unsqueeze(b, x, [at]), nothing)
    return squeeze(b, log_sum_exp(b, chosen, [at + 1]), [at + 1])


_register_scan("Cumsum", _running_sum)
_register_scan("Cumprod", running_product)
_register_scan("CumulativeLogsumexp", _running_log_sum)
