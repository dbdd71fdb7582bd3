"""Reductions, scans, softmax, and the largest and smallest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core.dtypes import DOUBLE, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.extents import reshaped
from mgx_mlir.frontends.helpers import (
    axis_in,
    convert,
    extent,
    greater_equal,
    less_equal,
    require,
    squeeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.activation import hardmax
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.reductions import (
    Reducer,
    log_sum_exp,
    reduce_at_run_time,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reduced,
    running_product,
)
from mgx_mlir.frontends.runtime_axes import flags, length
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def _widened(function: Reducer) -> Reducer:
    """Compute a reduction in f32 for 16-bit floats: squares and exponentials overflow them."""

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
    dtype, total = b.dtype(x), b.reduce_sum(x, axes=axes)
    if dtype.is_float:
        return b.log(total)
    return convert(b, b.log(convert(b, total, DOUBLE)), dtype)


def _log_sum_exp(b: Builder, x: Value, axes: list[int]) -> Value:
    """Import ReduceLogSumExp, in f64 for integers as the operator's definition says."""
    dtype = b.dtype(x)
    if dtype.is_float:
        return log_sum_exp(b, x, axes)
    return convert(b, log_sum_exp(b, convert(b, x, DOUBLE), axes), dtype)


_REDUCERS: dict[str, tuple[Reducer, int]] = {
    "ReduceSum": (reduce_sum, 13),
    "ReduceMean": (reduce_mean, 18),
    "ReduceMax": (reduce_max, 18),
    "ReduceMin": (reduce_min, 18),
    "ReduceProd": (reduce_prod, 18),
    "ReduceL1": (_widened(_l1), 18),
    "ReduceL2": (_widened(_l2), 18),
    "ReduceSumSquare": (_widened(_sum_square), 18),
    "ReduceLogSum": (_widened(_log_sum), 18),
    "ReduceLogSumExp": (_widened(_log_sum_exp), 18),
}


def _register_reduce(name: str, reducer: Reducer, axes_input_since: int) -> None:
    @onnx_op(name, since=axes_input_since)
    def reduce(
        b: Builder,
        node: Node,
        x: Value,
        axes: Value | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:
        rank = len(b.dims(x))
        known = None if axes is None else b.const(axes)
        if axes is not None and known is None and length(b, axes, "axes"):
            return reduce_at_run_time(b, x, reducer, axes, bool(keepdims))
        if known is None:
            known = np.empty(0, np.int64)
        wanted = [int(a) for a in np.asarray(known).reshape(-1)]
        if not wanted:
            if noop_with_empty_axes:
                # without axes to reduce, the elementwise part remains (sum of one element's square
                # etc.)
                return reduced(b, x, reducer, [], True)
            wanted = list(range(rank))
        return reduced(b, x, reducer, wanted, bool(keepdims))

    @onnx_op(name, since=1)
    def reduce_1(
        b: Builder, node: Node, x: Value, *, axes: Sequence[int] | None = None, keepdims: int = 1
    ) -> Value:
        wanted = list(range(len(b.dims(x)))) if not axes else list(axes)
        return reduced(b, x, reducer, wanted, bool(keepdims))


for _name, (_reducer, _since) in _REDUCERS.items():
    _register_reduce(_name, _reducer, _since)


# ---- ArgMax, ArgMin, TopK ----------------------------------------------------------------------


def _register_arg(name: str, op: str) -> None:
    @onnx_op(name, since=1)
    def arg(
        b: Builder,
        node: Node,
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


def top_k(b: Builder, x: Value, k: int, axis: int, largest: bool) -> tuple[Value, Value]:
    """Return the k largest or smallest along `axis`, and where they are."""
    axis = axis_in(axis, len(b.dims(x)))
    if k < 0 or (b.dims(x)[axis] != DYN and k > b.dims(x)[axis]):
        raise ModelError(f"k ({k}) is out of range for dim {axis} ({b.dims(x)[axis]})")
    return b.topk(x, k=k, axis=axis, largest=largest)


@onnx_op("TopK", since=10)
def top_k_op(
    b: Builder,
    node: Node,
    x: Value,
    k: Value,
    *,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
) -> Outputs:
    """Import TopK, always sorted: unsorted results may have any order."""
    known = b.const(k)
    if known is not None:
        return top_k(b, x, int(known.reshape(-1)[0]), axis, bool(largest))
    axis = axis_in(axis, len(b.dims(x)))
    count, most = b.reshape(convert(b, k, INT64), dims=[1]), extent(b, x, axis)
    inside = b.logical_and(greater_equal(b, count, 0), less_equal(b, count, most))
    count = require(b, count, inside, f"k of 0 to the extent of axis {axis}")
    return b.topk(x, None, count, axis=axis, largest=bool(largest))


@onnx_op("TopK", since=1)
def top_k_1(b: Builder, node: Node, x: Value, *, k: int, axis: int = -1) -> Outputs:
    """Import TopK of opsets 1 to 9, whose k is an attribute."""
    return top_k(b, x, k, axis, True)


# ---- scans -------------------------------------------------------------------------------------


@onnx_op("CumSum", since=11)
def cum_sum(
    b: Builder, node: Node, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0
) -> Value:
    """Import CumSum; with an axis known only at run time, all axes are computed and one
    selected.
    """
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


def element_flag(b: Builder, v: Value, i: int) -> Value:
    """Return element `i` of a vector as a 0-d tensor."""
    return squeeze(b, b.slice(v, axes=[0], starts=[i], ends=[i + 1]), [0])


# ---- softmax -----------------------------------------------------------------------------------


def _register_softmax(name: str, op: str) -> None:
    @onnx_op(name, since=13)
    def softmax(b: Builder, node: Node, x: Value, *, axis: int = -1) -> Value:
        return getattr(b, op)(x, axis=axis_in(axis, len(b.dims(x))))

    @onnx_op(name, since=1)
    def softmax_1(b: Builder, node: Node, x: Value, *, axis: int = 1) -> Value:
        """Import Softmax of opsets 1 to 12: over all dims from `axis` on, as one row."""
        rank = len(b.dims(x))
        axis = axis_in(axis, rank) if axis != rank else rank
        if axis == rank - 1:
            return getattr(b, op)(x, axis=axis)
        return by_rows(b, x, axis, lambda rows: getattr(b, op)(rows, axis=1))


def by_rows(b: Builder, x: Value, axis: int, function: Callable[[Value], Value]) -> Value:
    """Apply `function` to a matrix whose rows are all dims from `axis` on."""
    dims = b.dims(x)
    rows = function(b.flatten(x, axis=axis))
    if DYN in dims:
        return b.reshape(rows, b.shape(x), allowzero=True)
    return reshaped(b, rows, dims)


_register_softmax("Softmax", "softmax")
_register_softmax("LogSoftmax", "logsoftmax")


@onnx_op("Hardmax", since=1)
def hardmax_1(b: Builder, node: Node, x: Value, *, axis: int = 1) -> Value:
    """Import Hardmax of opsets 1 to 12: of rows with all dims from `axis` on."""
    rank = len(b.dims(x))
    axis = axis_in(axis, rank) if axis != rank else rank
    return by_rows(b, x, axis, lambda rows: hardmax(b, node, rows, axis=1))


@onnx_op("CumProd", since=26)
def cum_prod(
    b: Builder, node: Node, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0
) -> Value:
    """Import CumProd; with an axis known only at run time, all axes are computed and one
    selected.
    """
    rank = len(b.dims(x))

    def along_axis(at: int) -> Value:
        return running_product(b, x, at, bool(exclusive), bool(reverse))

    known = b.const(axis)
    if known is not None:
        return along_axis(axis_in(int(known.reshape(-1)[0]), rank))
    wanted = flags(b, b.reshape(convert(b, axis, INT64), dims=[1]), rank)
    out = x
    for i in range(rank):
        out = b.where(element_flag(b, wanted, i), along_axis(i), out)
    return out
