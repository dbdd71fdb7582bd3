"""Reductions, argmax and argmin, softmax and losses."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import DOUBLE, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends import reductions
from mgx_mlir.frontends.helpers import (
    axis_in,
    axis_range,
    compare,
    convert,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.reductions import Reducer, reduce_at_run_time, reduced
from mgx_mlir.frontends.runtime_axes import flags, length
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def _euclidean(b: Builder, x: Value, axes: list[int]) -> Value:
    return b.sqrt(b.reduce_sum(b.mul(x, x), axes=axes))


_REDUCERS: dict[str, Reducer] = {
    "Sum": reductions.reduce_sum,
    "Mean": reductions.reduce_mean,
    "Max": reductions.reduce_max,
    "Min": reductions.reduce_min,
    "Prod": reductions.reduce_prod,
    "EuclideanNorm": _euclidean,
    "All": lambda b, x, axes: b.reduce_all(x, axes=axes),
    "Any": lambda b, x, axes: b.reduce_any(x, axes=axes),
}


def _register(name: str, reducer: Reducer) -> None:
    @tf_op(name)
    def reduction(
        b: Builder, node: Node, x: Value, axes: Value, *, keep_dims: bool = False
    ) -> Value:
        dtype = b.dtype(x)
        if name in ("Mean", "EuclideanNorm"):
            whole = name == "EuclideanNorm" and dtype.is_integer
            x = convert(b, x, DOUBLE if whole else wide(dtype))
        known = b.const(axes)
        if known is not None:
            wanted = [int(a) for a in known.reshape(-1)]
            if not wanted and name != "EuclideanNorm":
                return convert(b, x, dtype)
            out = reduced(b, x, reducer, wanted, keep_dims)
        else:
            if length(b, axes, "axes") and not b.dims(axes):
                axes = b.reshape(axes, dims=[1])
            out = reduce_at_run_time(b, x, reducer, axes, keep_dims)
        return convert(b, out, dtype)


for _name, _reducer in _REDUCERS.items():
    _register(_name, _reducer)


@tf_op("L2Loss")
def l2_loss(b: Builder, node: Node, x: Value) -> Value:
    """Import L2Loss: half the sum of squares."""
    dtype = b.dtype(x)
    x = convert(b, x, wide(dtype))
    total = reduced(b, b.mul(x, x), reductions.reduce_sum, range(len(b.dims(x))), False)
    return convert(b, b.mul(total, 0.5), dtype)


def _register_arg(name: str, op: str) -> None:
    @tf_op(name)
    def extreme(
        b: Builder, node: Node, x: Value, axis: Value, *, output_type: DType = INT64
    ) -> Value:
        """Import ArgMax and ArgMin: the first of equal elements; the axis may be a run-time
        value.
        """
        rank = len(b.dims(x))
        known = b.const(axis)
        kind = output_type
        if known is not None:
            at = axis_in(int(known.reshape(-1)[0]), rank)
            return convert(b, squeeze(b, getattr(b, op)(x, axis=at), [at]), kind)
        if rank != 1:
            dims = set(b.dims(x))
            if len(dims) != 1:
                node.ints(axis, "dimension")  # refused: the rank of the result depends on it
        wanted = flags(b, b.reshape(convert(b, axis, INT64), dims=[1]), rank)
        out = None
        for i in range(rank):
            here = squeeze(b, getattr(b, op)(x, axis=i), [i])
            flag = squeeze(b, b.slice(wanted, axes=[0], starts=[i], ends=[i + 1]), [0])
            out = here if out is None else b.where(flag, here, out)
        assert out is not None
        return convert(b, out, kind)


_register_arg("ArgMax", "argmax")
_register_arg("ArgMin", "argmin")


@tf_op("Softmax")
def softmax(b: Builder, node: Node, x: Value) -> Value:
    """Import Softmax, along the last axis."""
    return b.softmax(x, axis=len(b.dims(x)) - 1)


@tf_op("LogSoftmax")
def log_softmax(b: Builder, node: Node, x: Value) -> Value:
    """Import LogSoftmax, along the last axis."""
    return b.logsoftmax(x, axis=len(b.dims(x)) - 1)


@tf_op("SoftmaxCrossEntropyWithLogits", outputs=("loss", "backprop"))
def softmax_cross_entropy(b: Builder, node: Node, x: Value, labels: Value) -> Outputs:
    """Import SoftmaxCrossEntropyWithLogits: -sum(labels * logsoftmax(x)), and softmax(x) - labels;
    rows broadcast.
    """
    x, labels = b.broadcast(x, labels)
    if len(b.dims(x)) != 2:
        raise ModelError(f"expected matrices, got rank {len(b.dims(x))}")
    logs = b.logsoftmax(x, axis=1)
    loss = b.neg(squeeze(b, b.reduce_sum(b.mul(labels, logs), axes=[1]), [1]))
    return loss, b.sub(b.exp(logs), labels)


@tf_op("SparseSoftmaxCrossEntropyWithLogits", outputs=("loss", "backprop"))
def sparse_softmax_cross_entropy(b: Builder, node: Node, x: Value, labels: Value) -> Outputs:
    """Import SparseSoftmaxCrossEntropyWithLogits; the row of a label out of range is NaN."""
    if len(b.dims(x)) != 2:
        raise ModelError(f"expected a matrix, got rank {len(b.dims(x))}")
    classes = axis_range(b, x, 1)
    hot = compare(b, "equal", unsqueeze(b, convert(b, labels, INT64), [1]), classes)
    logs = b.logsoftmax(x, axis=1)
    dtype = b.dtype(x)
    inside = squeeze(b, b.reduce_any(hot, axes=[1]), [1])
    nan = b.literal(np.array(np.nan, dtype.np))
    picked = squeeze(b, b.reduce_sum(b.where(hot, logs, 0), axes=[1]), [1])
    loss = b.where(inside, b.neg(picked), nan)
    back = b.sub(b.exp(logs), convert(b, hot, dtype))
    return loss, b.where(unsqueeze(b, inside, [1]), back, nan)
