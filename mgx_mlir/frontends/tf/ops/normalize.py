"""Normalizations with given or own moments."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.extents import extents, product, scalar
from mgx_mlir.frontends.helpers import along, convert, squeeze
from mgx_mlir.frontends.tf.layout import to_first, to_last
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

V1 = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2")


def batch_norm(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    data_format: str | None = None,
    is_training: bool = True,
) -> tuple[Value, ...]:
    """Return (x - mean) * scale / sqrt(variance + epsilon) + offset; in training with x's own
    moments.
    """
    rank = len(b.dims(x))
    axis = rank - 1 if node.channels_last(data_format) else 1
    kind = b.dtype(scale)
    wide_x = convert(b, x, kind)
    outs: tuple[Value, ...] = mean, variance
    if is_training:
        before, share = outs, exponential_avg_factor
        axes = [i for i in range(rank) if i != axis]
        mean = squeeze(b, b.reduce_mean(wide_x, axes=axes), axes)
        centred = b.sub(wide_x, along(b, mean, x, axis))
        variance = squeeze(b, b.reduce_mean(b.mul(centred, centred), axes=axes), axes)
        own = extents(b, x)
        count = convert(b, scalar(b, product(b, [own[i] for i in axes])), kind)
        outs = mean, b.mul(variance, b.div(count, b.max(b.sub(count, 1), 1)))
        if share != 1:
            outs = tuple(
                b.add(b.mul(old, 1 - share), b.mul(new, share))
                for old, new in zip(before, outs, strict=True)
            )
    factor = b.mul(scale, b.rsqrt(b.add(variance, epsilon)))
    y = b.mul(b.sub(wide_x, along(b, mean, x, axis)), along(b, factor, x, axis))
    y = convert(b, b.add(y, along(b, offset, x, axis)), b.dtype(x))
    if any(len(b.dims(v)) != 1 for v in (scale, offset)):
        raise ModelError("scale and offset expected vectors")
    return (y, *outs, *outs, b.literal(np.zeros((), kind.np)))


@tf_op("FusedBatchNorm", "FusedBatchNormV2", outputs=V1)
@tf_op("FusedBatchNormV3", outputs=(*V1, "reserve_space_3"))
def fused_batch_norm(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    data_format: str | None = None,
    is_training: bool = True,
) -> Outputs:
    """Import FusedBatchNorm; version 3 has one more output."""
    found = batch_norm(
        b, node, x, scale, offset, mean, variance, epsilon=epsilon,
        exponential_avg_factor=exponential_avg_factor, data_format=data_format,
        is_training=is_training,
    )  # fmt: skip
    return found[: 6 if "V3" in node.op_type else 5]


@tf_op("LRN")
def lrn(
    b: Builder,
    node: Node,
    x: Value,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Value:
    """Import LRN: x / (bias + alpha * the sum of squares of neighbouring channels)^beta,
    channels-last.
    """
    if len(b.dims(x)) != 4 or depth_radius < 0:
        raise ModelError("expected rank 4 and a depth_radius of 0 or more")
    size = 2 * depth_radius + 1
    return to_last(b, b.lrn(to_first(b, x), alpha=alpha * size, beta=beta, bias=bias, size=size))
