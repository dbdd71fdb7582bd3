"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.build import Builder
from mgx_mlir.frontends.helpers import Value
from mgx_mlir.frontends.tf.layout import spatial, to_first, to_last, window_attributes
from mgx_mlir.frontends.tf.registry import tf_op


def pool(
    b: Builder,
    node: Any,
    x: Value,
    mode: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    data_format: str | None,
) -> Value:
    last = node.channels_last(data_format)
    rank = len(b.dims(x))
    lengths = spatial(ksize, rank, last, "ksize")
    stride = spatial(strides, rank, last, "strides")
    x = to_first(b, x) if last else x
    pads = window_attributes(padding, explicit, b.dims(x)[2:], lengths, stride, last)
    y = b.pooling(
        x, mode=mode, lengths=lengths, stride=stride, dilations=[1] * len(lengths), **pads
    )
    return to_last(b, y) if last else y


@tf_op("MaxPool", "MaxPool3D")
def max_pool(
    b: Builder,
    node: Any,
    x: Value,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str | None = None,
) -> Value:
    return pool(b, node, x, "max", ksize, strides, padding, explicit_paddings, data_format)


@tf_op("MaxPoolV2")
def max_pool_v2(
    b: Builder,
    node: Any,
    x: Value,
    ksize: Value,
    strides: Value,
    *,
    padding: str,
    data_format: str | None = None,
) -> Value:
    sizes, steps = node.ints(ksize, "ksize"), node.ints(strides, "strides")
    return pool(b, node, x, "max", sizes, steps, padding, (), data_format)


@tf_op("AvgPool", "AvgPool3D")
def avg_pool(
    b: Builder,
    node: Any,
    x: Value,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str | None = None,
) -> Value:
    """An average counts no padding."""
    return pool(b, node, x, "average", ksize, strides, padding, (), data_format)
