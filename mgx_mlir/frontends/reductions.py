"""Reductions over static or run-time axes, and cumulative products, for every file format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.frontends.helpers import axes_in, axis_range, compare, convert, squeeze, unsqueeze
from mgx_mlir.frontends.runtime_axes import distinct, element, flags, kept_dims
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

Reducer = Callable[[Builder, Value, list[int]], Value]  # a reduction that keeps the dims as 1


def reduce_sum(b: Builder, x: Value, axes: list[int]) -> Value:
    """Return the sums over `axes`, which keep an extent of 1."""
    return b.reduce_sum(x, axes=axes)


def reduce_mean(b: Builder, x: Value, axes: list[int]) -> Value:
    """Return the means over `axes`, which keep an extent of 1."""
    return b.reduce_mean(x, axes=axes)


def reduce_max(b: Builder, x: Value, axes: list[int]) -> Value:
    """Return the largest over `axes`, which keep an extent of 1; of bool whether any is true."""
    if b.dtype(x).is_bool:
        return b.reduce_any(x, axes=axes)
    return b.reduce_max(x, axes=axes)


def reduce_min(b: Builder, x: Value, axes: list[int]) -> Value:
    """Return the smallest over `axes`, which keep an extent of 1; of bool whether all are true."""
    if b.dtype(x).is_bool:
        return b.reduce_all(x, axes=axes)
    return b.reduce_min(x, axes=axes)


def reduce_prod(b: Builder, x: Value, axes: list[int]) -> Value:
    """Return the products over `axes`, which keep an extent of 1."""
    return b.reduce_prod(x, axes=axes)


def log_sum_exp(b: Builder, x: Value, axes: list[int]) -> Value:
    """Return max + log(sum(exp(x - max))), with an infinite max replaced by 0 inside."""
    top = b.reduce_max(x, axes=axes)
    safe = b.where(b.isinf(top), 0, top)
    total = b.reduce_sum(b.exp(b.sub(x, safe)), axes=axes)
    return b.add(b.log(total), safe)


def reduced(b: Builder, x: Value, reducer: Reducer, axes: Sequence[int], keepdims: bool) -> Value:
    """Return the reduction over known axes; without axes each element is still transformed."""
    axes = axes_in(axes, len(b.dims(x)))
    if not b.dims(x):
        # a scalar gets an axis for the reduction, which is removed again
        return squeeze(b, reducer(b, unsqueeze(b, x, [0]), [0]), [0])
    if axes:
        out = reducer(b, x, axes)
        return out if keepdims else squeeze(b, out, axes)
    rank = len(b.dims(x))
    return squeeze(b, reducer(b, unsqueeze(b, x, [rank]), [rank]), [rank])


def reduce_at_run_time(
    b: Builder, x: Value, reducer: Reducer, axes: Value, keepdims: bool
) -> Value:
    """Reduce over run-time axes: permute elements by index to a table, then reduce its rows.

    Every element gets the flat index of its output element. The table has one column per output
    element, and its rows are reduced.
    """
    rank = len(b.dims(x))
    shape = b.shape(x)
    axes = distinct(b, axes, rank, "axes that differ")
    gone = flags(b, axes, rank)
    out_dims = b.where(gone, 1, shape)
    if 0 in b.dims(x):  # every result element, if there are any, is the reduction of an empty set
        nothing = reducer(b, b.literal(np.zeros(0, b.dtype(x).np)), [0])
        target = out_dims if keepdims else kept_dims(b, x, axes)
        return b.broadcast_with_dims(squeeze(b, nothing, [0]), target)
    # order of axes: reduced ones first, both kinds in their original order
    gone_count = convert(b, gone, INT64)
    kept_count = convert(b, b.not_(gone), INT64)
    total_gone = b.reduce_sum(gone_count, axes=[0])
    place = b.where(
        gone,
        b.prefix_scan_sum(gone_count, axis=0, exclusive=True),
        b.add(b.prefix_scan_sum(kept_count, axis=0, exclusive=True), total_gone),
    )
    strides = _suffix_products(b, shape, rank)
    numbers = b.literal(np.arange(rank)[:, None])
    hit = convert(b, compare(b, "equal", unsqueeze(b, place, [0]), numbers), INT64)

    def ordered(v: Value) -> Value:
        return squeeze(b, b.reduce_sum(b.mul(hit, unsqueeze(b, v, [0])), axes=[1]), [1])

    new_shape, new_strides = ordered(shape), ordered(strides)
    new_steps = _suffix_products(b, new_shape, rank)
    # index of each element of the permuted tensor in the original: sum of coordinate * original
    # stride
    size = squeeze(b, b.reduce_prod(shape, axes=[0]), [0])
    zero, one = b.literal(0, INT64), b.literal(1, INT64)
    flat = b.dynamic_range(zero, size, one)
    where = None
    for i in range(rank):
        step, dim = element(b, new_steps, i), element(b, new_shape, i)
        coordinate = b.mod(b.div(flat, b.max(step, 1)), b.max(dim, 1))
        term = b.mul(coordinate, element(b, new_strides, i))
        where = term if where is None else b.add(where, term)
    columns = b.reduce_prod(out_dims, axes=[0])
    rows = b.reduce_prod(b.where(gone, shape, 1), axes=[0])
    moved = b.gather(b.reshape(x, dims=[-1]), where, axis=0)
    table = b.reshape(moved, b.concat([rows, columns], axis=0), allowzero=True)
    out = squeeze(b, reducer(b, table, [0]), [0])
    if keepdims:
        return b.reshape(out, out_dims, allowzero=True)
    return b.reshape(out, kept_dims(b, x, axes), allowzero=True)


def _suffix_products(b: Builder, dims: Value, rank: int) -> Value:
    """Return row-major strides of dynamic dims."""
    later = np.tril(np.ones((rank, rank), bool), -1).T  # [i, j]: j > i
    table = b.where(b.literal(later), unsqueeze(b, dims, [0]), 1)
    return squeeze(b, b.reduce_prod(table, axes=[1]), [1])


def running_product(b: Builder, x: Value, at: int, exclusive: bool, reverse: bool) -> Value:
    """Reduce a table of selections of the axis: each result is the product over its own row."""
    rank = len(b.dims(x))
    source = axis_range(b, x, at)
    row, column = unsqueeze(b, source, [0]), unsqueeze(b, source, [1])
    table = compare(b, "greater" if reverse else "less", row, column)  # result x source
    if not exclusive:
        table = b.logical_or(table, compare(b, "equal", row, column))
    table = unsqueeze(b, table, range(2, rank - at + 1))
    one = b.literal(np.ones((), b.dtype(x).np))
    chosen = b.where(table, unsqueeze(b, x, [at]), one)
    return squeeze(b, b.reduce_prod(chosen, axes=[at + 1]), [at + 1])
