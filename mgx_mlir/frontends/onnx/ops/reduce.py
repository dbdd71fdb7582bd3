"""Reductions, scans, softmax, and the largest and smallest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.build import Builder
from mgx_mlir.core.dtypes import DOUBLE, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.onnx.helpers import (
    Value,
    axes_in,
    axis_in,
    axis_range,
    compare,
    convert,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.ops.activation import hardmax
from mgx_mlir.frontends.onnx.problems import NotSupported
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.runtime_axes import element, flags, kept_dims, length

Reducer = Callable[[Builder, Value, list[int]], Value]  # dims are kept as 1


def _sum(b: Builder, x: Value, axes: list[int]) -> Value:
    return b.reduce_sum(x, axes=axes)


def _mean(b: Builder, x: Value, axes: list[int]) -> Value:
    return b.reduce_mean(x, axes=axes)


def _max(b: Builder, x: Value, axes: list[int]) -> Value:
    if b.dtype(x).is_bool:
        return b.reduce_any(x, axes=axes)
    return b.reduce_max(x, axes=axes)


def _min(b: Builder, x: Value, axes: list[int]) -> Value:
    if b.dtype(x).is_bool:
        return b.reduce_all(x, axes=axes)
    return b.reduce_min(x, axes=axes)


def _prod(b: Builder, x: Value, axes: list[int]) -> Value:
    return b.reduce_prod(x, axes=axes)


def _widened(function: Reducer) -> Reducer:
    """Computed in f32 for 16-bit floats: squares and exponentials overflow them."""

    def widened(b: Builder, x: Value, axes: list[int]) -> Value:
        dtype = b.dtype(x)
        return convert(b, function(b, convert(b, x, wide(dtype)), axes), dtype)

    return widened


def _l1(b: Builder, x: Value, axes: list[int]) -> Value:
    return b.reduce_sum(b.abs(x), axes=axes)


def _sum_square(b: Builder, x: Value, axes: list[int]) -> Value:
    return b.reduce_sum(b.mul(x, x), axes=axes)


def _l2(b: Builder, x: Value, axes: list[int]) -> Value:
    dtype = b.dtype(x)
    total = _sum_square(b, x, axes)
    if dtype.is_float:
        return b.sqrt(total)
    return convert(b, b.sqrt(convert(b, total, DOUBLE)), dtype)


def _log_sum(b: Builder, x: Value, axes: list[int]) -> Value:
    return b.log(b.reduce_sum(x, axes=axes))


def log_sum_exp(b: Builder, x: Value, axes: list[int]) -> Value:
    """max + log(sum(exp(x - max))), with an infinite max replaced by 0 inside."""
    top = b.reduce_max(x, axes=axes)
    safe = b.where(b.isinf(top), 0, top)
    total = b.reduce_sum(b.exp(b.sub(x, safe)), axes=axes)
    return b.add(b.log(total), safe)


_REDUCERS: dict[str, tuple[Reducer, int]] = {
    "ReduceSum": (_sum, 13),
    "ReduceMean": (_mean, 18),
    "ReduceMax": (_max, 18),
    "ReduceMin": (_min, 18),
    "ReduceProd": (_prod, 18),
    "ReduceL1": (_widened(_l1), 18),
    "ReduceL2": (_widened(_l2), 18),
    "ReduceSumSquare": (_widened(_sum_square), 18),
    "ReduceLogSum": (_widened(_log_sum), 18),
    "ReduceLogSumExp": (_widened(log_sum_exp), 18),
}


def reduced(b: Builder, x: Value, reducer: Reducer, axes: Sequence[int], keepdims: bool) -> Value:
    """The reduction over known axes; over none it still transforms each element."""
    axes = axes_in(axes, len(b.dims(x)))
    if not b.dims(x):
        # a scalar is reduced over an axis of its own, then given back as a scalar
        return squeeze(b, reducer(b, unsqueeze(b, x, [0]), [0]), [0])
    if axes:
        out = reducer(b, x, axes)
        return out if keepdims else squeeze(b, out, axes)
    rank = len(b.dims(x))
    return squeeze(b, reducer(b, unsqueeze(b, x, [rank]), [rank]), [rank])


def _register_reduce(name: str, reducer: Reducer, axes_input_since: int) -> None:
    @onnx_op(name, since=axes_input_since)
    def reduce(
        b: Builder,
        node: Any,
        x: Value,
        axes: Value = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:
        rank = len(b.dims(x))
        known = [] if axes is None else b.const(axes)
        if known is None:
            if length(b, axes, "axes"):
                return reduce_at_run_time(b, x, reducer, axes, bool(keepdims))
            known = []
        wanted = [int(a) for a in np.asarray(known).reshape(-1)]
        if not wanted:
            if noop_with_empty_axes:
                # the spec's no-op keeps the elementwise part: sum of one element's square etc.
                return reduced(b, x, reducer, [], True)
            wanted = list(range(rank))
        return reduced(b, x, reducer, wanted, bool(keepdims))

    @onnx_op(name, since=1)
    def reduce_1(
        b: Builder, node: Any, x: Value, *, axes: Sequence[int] | None = None, keepdims: int = 1
    ) -> Value:
        wanted = list(range(len(b.dims(x)))) if not axes else list(axes)
        return reduced(b, x, reducer, wanted, bool(keepdims))


for _name, (_reducer, _since) in _REDUCERS.items():
    _register_reduce(_name, _reducer, _since)


def reduce_at_run_time(
    b: Builder, x: Value, reducer: Reducer, axes: Value, keepdims: bool
) -> Value:
    """Axes known at run time: bring the reduced ones to the front by index, then reduce once.

    Every element gets the flat number of the output element it belongs to; elements are put in
    a table of one column per output element, and the table's rows are reduced.
    """
    rank = len(b.dims(x))
    shape = b.shape(x)
    gone = flags(b, axes, rank)
    out_dims = b.where(gone, 1, shape)
    if 0 in b.dims(x):  # every result element, if there are any, is the reduction of nothing
        nothing = reducer(b, b.literal(np.zeros(0, b.dtype(x).np)), [0])
        target = out_dims if keepdims else kept_dims(b, x, axes)
        return b.broadcast_with_dims(squeeze(b, nothing, [0]), target)
    # the order of axes: reduced ones first, both kinds in their old order
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
    # index of each element of the moved tensor in the old one: sum of coordinate * old stride
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
    table = b.reshape(moved, b.concat([rows, columns], axis=0))
    out = squeeze(b, reducer(b, table, [0]), [0])
    if keepdims:
        return b.reshape(out, out_dims)
    return b.reshape(out, kept_dims(b, x, axes))


def _suffix_products(b: Builder, dims: Value, rank: int) -> Value:
    """Row-major strides of run-time dims."""
    later = np.tril(np.ones((rank, rank), bool), -1).T  # [i, j]: j > i
    table = b.where(b.literal(later), unsqueeze(b, dims, [0]), 1)
    return squeeze(b, b.reduce_prod(table, axes=[1]), [1])


# ---- ArgMax, ArgMin, TopK ----------------------------------------------------------------------


def _register_arg(name: str, op: str) -> None:
    @onnx_op(name, since=1)
    def arg(
        b: Builder,
        node: Any,
        x: Value,
        *,
        axis: int = 0,
        keepdims: int = 1,
        select_last_index: int = 0,
    ) -> Value:
        axis = axis_in(axis, len(b.dims(x)))
        out = getattr(b, op)(x, axis=axis, select_last_index=bool(select_last_index))
        return out if keepdims else squeeze(b, out, [axis])


_register_arg("ArgMax", "argmax")
_register_arg("ArgMin", "argmin")


def top_k(b: Builder, x: Value, k: int, axis: int, largest: bool) -> Any:
    axis = axis_in(axis, len(b.dims(x)))
    if k < 0 or (b.dims(x)[axis] != DYN and k > b.dims(x)[axis]):
        raise ModelError(f"k ({k}) is out of range for dim {axis} ({b.dims(x)[axis]})")
    return b.topk(x, k=k, axis=axis, largest=largest)


@onnx_op("TopK", since=10)
def top_k_op(
    b: Builder,
    node: Any,
    x: Value,
    k: Value,
    *,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
) -> Any:
    """Sorted whether asked to or not: that order is allowed too."""
    known = b.const(k)
    if known is not None:
        return top_k(b, x, int(known.reshape(-1)[0]), axis, bool(largest))
    axis = axis_in(axis, len(b.dims(x)))
    if b.dims(x)[axis] == DYN:
        raise NotSupported("k computed at run time along a dynamic axis")
    everything = top_k(b, x, b.dims(x)[axis], axis, bool(largest))
    end = b.reshape(convert(b, k, INT64), dims=[1])
    return tuple(b.op("slice", v, b.ints([0]), end, axes=[axis]) for v in everything)


@onnx_op("TopK", since=1)
def top_k_1(b: Builder, node: Any, x: Value, *, k: int, axis: int = -1) -> Any:
    return top_k(b, x, k, axis, True)


# ---- scans -------------------------------------------------------------------------------------


@onnx_op("CumSum", since=11)
def cum_sum(
    b: Builder, node: Any, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0
) -> Value:
    rank = len(b.dims(x))
    options = {"exclusive": bool(exclusive), "reverse": bool(reverse)}
    known = b.const(axis)
    if known is not None:
        at = axis_in(int(known.reshape(-1)[0]), rank)
        return b.prefix_scan_sum(x, axis=at, **options)
    wanted = flags(b, b.reshape(convert(b, axis, INT64), dims=[1]), rank)
    out = x
    for i in range(rank):
        chosen = element_flag(b, wanted, i)
        out = b.where(chosen, b.prefix_scan_sum(x, axis=i, **options), out)
    return out


@onnx_op("CumProd", since=26)
def cum_prod(
    b: Builder, node: Any, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0
) -> Value:
    """Each result is the product over its own selection of the axis: a table of them, reduced."""
    rank = len(b.dims(x))

    def along_axis(at: int) -> Value:
        source = axis_range(b, x, at)
        row, column = unsqueeze(b, source, [0]), unsqueeze(b, source, [1])
        table = compare(b, "greater" if reverse else "less", row, column)  # result x source
        if not exclusive:
            table = b.logical_or(table, compare(b, "equal", row, column))
        table = unsqueeze(b, table, range(2, rank - at + 1))
        one = b.literal(np.ones((), b.dtype(x).np))
        chosen = b.where(table, unsqueeze(b, x, [at]), one)
        return squeeze(b, b.reduce_prod(chosen, axes=[at + 1]), [at + 1])

    known = b.const(axis)
    if known is not None:
        return along_axis(axis_in(int(known.reshape(-1)[0]), rank))
    wanted = flags(b, b.reshape(convert(b, axis, INT64), dims=[1]), rank)
    out = x
    for i in range(rank):
        out = b.where(element_flag(b, wanted, i), along_axis(i), out)
    return out


def element_flag(b: Builder, v: Value, i: int) -> Value:
    return squeeze(b, b.slice(v, axes=[0], starts=[i], ends=[i + 1]), [0])


# ---- softmax -----------------------------------------------------------------------------------


def _register_softmax(name: str, op: str) -> None:
    @onnx_op(name, since=13)
    def softmax(b: Builder, node: Any, x: Value, *, axis: int = -1) -> Value:
        return getattr(b, op)(x, axis=axis_in(axis, len(b.dims(x))))

    @onnx_op(name, since=1)
    def softmax_1(b: Builder, node: Any, x: Value, *, axis: int = 1) -> Value:
        """Over everything from `axis` on, as one row."""
        rank = len(b.dims(x))
        axis = axis_in(axis, rank) if axis != rank else rank
        if axis == rank - 1:
            return getattr(b, op)(x, axis=axis)
        return by_rows(b, x, axis, lambda rows: getattr(b, op)(rows, axis=1))


def by_rows(b: Builder, x: Value, axis: int, function: Callable[[Value], Value]) -> Value:
    """`function` on the matrix whose rows are everything from `axis` on."""
    dims = b.dims(x)
    rows = function(b.flatten(x, axis=axis))
    if DYN in dims:
        return b.reshape(rows, b.shape(x))
    return b.reshape(rows, dims=list(dims)) if len(dims) != 2 or axis != 1 else rows


_register_softmax("Softmax", "softmax")
_register_softmax("LogSoftmax", "logsoftmax")


@onnx_op("Hardmax", since=1)
def hardmax_1(b: Builder, node: Any, x: Value, *, axis: int = 1) -> Value:
    rank = len(b.dims(x))
    axis = axis_in(axis, rank) if axis != rank else rank
    return by_rows(b, x, axis, lambda rows: hardmax(b, node, rows, axis=1))
