"""Normalisations, each computed in f32 for 16-bit floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.helpers import (
    along,
    axes_in,
    axis_in,
    compare,
    convert,
    extent,
    fitted,
    require,
    require_extent,
    reshape,
    same_extent,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def standardized(
    b: Builder, x: Value, axes: Sequence[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """Return (x - mean) / sqrt(variance + epsilon), the mean and 1 / sqrt(variance + epsilon)."""
    mean = b.reduce_mean(x, axes=list(axes))
    centred = b.sub(x, mean)
    variance = b.reduce_mean(b.mul(centred, centred), axes=list(axes))
    inverse = b.rsqrt(b.add(variance, epsilon))
    return b.mul(centred, inverse), mean, inverse


@onnx_op("BatchNormalization", since=9)
@onnx_op("BatchNormalization", since=15)
def batch_normalization(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Outputs:
    """Return (x - mean) * scale / sqrt(variance + epsilon) + bias; in training with x's own
    moments.
    """
    dims = b.dims(x)
    if not dims:
        raise ModelError("expected rank 1 or more, got 0")
    if len(dims) == 1:  # scale of one channel
        found = batch_normalization(
            b,
            node,
            unsqueeze(b, x, [1]),
            scale,
            bias,
            mean,
            variance,
            epsilon=epsilon,
            momentum=momentum,
            training_mode=training_mode,
        )
        y, *rest = found if isinstance(found, tuple) else (found,)
        return (squeeze(b, cast(Value, y), [1]), *rest)
    if node.opset < 15 and not training_mode and any(node.wants(i) for i in range(1, 5)):
        raise NotSupported("training outputs")
    if training_mode:
        return _batch_norm_training(b, x, scale, bias, mean, variance, epsilon, momentum)
    kind = wide(b.dtype(variance))
    scale, bias, mean, variance = (
        convert(b, same_extent(b, v, 0, x, 1, "a vector as long as dim 1"), kind)
        for v in (scale, bias, mean, variance)
    )
    factor = b.mul(scale, b.rsqrt(b.add(variance, epsilon)))
    y = b.sub(convert(b, x, kind), along(b, mean, x, 1))
    y = b.add(b.mul(y, along(b, factor, x, 1)), along(b, bias, x, 1))
    return convert(b, y, b.dtype(x))


def _batch_norm_training(
    b: Builder,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    epsilon: float,
    momentum: float,
) -> Any:
    axes = [i for i in range(len(b.dims(x))) if i != 1]
    wide_x = convert(b, x, wide(b.dtype(x)))
    current = b.reduce_mean(wide_x, axes=axes)
    centred = b.sub(wide_x, current)
    spread = b.reduce_mean(b.mul(centred, centred), axes=axes)
    y = b.mul(centred, b.rsqrt(b.add(spread, epsilon)))

    def affine(v: Value) -> Value:
        return along(b, convert(b, v, b.dtype(y)), x, 1)

    y = b.add(b.mul(y, affine(scale)), affine(bias))

    def running(old: Value, new: Value) -> Value:
        vector = convert(b, reshape(b, new, [-1]), b.dtype(old))
        return b.add(b.mul(old, momentum), b.mul(vector, 1 - momentum))

    return convert(b, y, b.dtype(x)), running(mean, current), running(variance, spread)


@onnx_op("BatchNormalization", since=1)
def batch_normalization_1(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    is_test: int = 0,
    consumed_inputs: Sequence[int] | None = None,
) -> Outputs:
    """Import BatchNormalization: from opset 7 on always inference, before only with is_test."""
    if node.opset < 7 and not is_test:
        raise NotSupported("training")
    if not spatial:
        raise NotSupported("spatial=0")
    return batch_normalization(b, node, x, scale, bias, mean, variance, epsilon=epsilon)


@onnx_op("InstanceNormalization", since=1)
def instance_normalization(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    epsilon: float = 1e-5,
    consumed_inputs: Sequence[int] | None = None,
) -> Value:
    """Import InstanceNormalization: normalise each channel of each batch entry."""
    dtype, rank = b.dtype(x), len(b.dims(x))
    if rank < 3:
        raise ModelError(f"expected rank 3 or more, got {rank}")
    kind = wide(dtype)
    y, _, _ = standardized(b, convert(b, x, kind), range(2, rank), epsilon)
    y = b.mul(y, along(b, convert(b, scale, kind), x, 1))
    return convert(b, b.add(y, along(b, convert(b, bias, kind), x, 1)), dtype)


@onnx_op("LayerNormalization", since=1)  # onnxruntime writes this version into models of any opset
@onnx_op("LayerNormalization", since=17)
def layer_normalization(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    bias: Value | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Outputs:
    """Import LayerNormalization, computed in f32 unless `stash_type` says otherwise."""
    dtype, rank = b.dtype(x), len(b.dims(x))
    axis = axis_in(axis, rank)
    kind = _stash(dtype, stash_type)
    x, scale = fitted(b, x, scale, "a scale")
    if bias is not None:
        x, bias = fitted(b, x, bias, "a bias")
    y, mean, inverse = standardized(b, convert(b, x, kind), range(axis, rank), epsilon)
    y = b.mul(y, convert(b, scale, kind))
    if bias is not None:
        y = b.add(y, convert(b, bias, kind))
    return convert(b, y, dtype), mean, inverse


def _stash(dtype: dtypes.DType, stash_type: int) -> dtypes.DType:
    """Return the type that a normalisation is computed in; never narrower than the data.

    0 stands for the data's type.
    """
    if not stash_type:
        return dtype
    stash = dtypes.from_onnx(stash_type)
    return stash if stash.size > dtype.size else dtype


@onnx_op("RMSNormalization", since=23)
def rms_normalization(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Value:
    """Import RMSNormalization, computed in f32 unless `stash_type` says otherwise.

    The result has the type of the scale.
    """
    rank = len(b.dims(x))
    axis = axis_in(axis, rank)
    x, scale = fitted(b, x, scale, "a scale")
    y = rms(b, convert(b, x, _stash(b.dtype(x), stash_type)), range(axis, rank), epsilon)
    return convert(b, b.mul(y, convert(b, scale, b.dtype(y))), b.dtype(scale))


def rms(b: Builder, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """x / sqrt(mean(x^2) + epsilon)."""
    square = b.reduce_mean(b.mul(x, x), axes=list(axes))
    return b.mul(x, b.rsqrt(b.add(square, epsilon)))


@onnx_op("GroupNormalization", since=21)
def group_normalization(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    epsilon: float = 1e-5,
    num_groups: int,
    stash_type: int = 1,
) -> Value:
    """Import GroupNormalization: scale and bias have one number per channel."""
    dtype, kind = b.dtype(x), _stash(b.dtype(x), stash_type)
    known = b.dims(scale)[0]
    if known != DYN and len(b.dims(x)) > 1 and b.dims(x)[1] == DYN:
        x = require_extent(b, x, 1, known)
    y = grouped(b, convert(b, x, kind), num_groups, epsilon)
    y = b.mul(y, along(b, convert(b, scale, kind), x, 1))
    return convert(b, b.add(y, along(b, convert(b, bias, kind), x, 1)), dtype)


def grouped(b: Builder, x: Value, groups: int, epsilon: float) -> Value:
    """Normalise `x` {batch, channels, spatial..} within groups of channels."""
    dims = b.dims(x)
    _check_groups(dims, groups)
    if dims[1] == DYN:
        rest = compare(b, "equal", b.mod(extent(b, x, 1), groups), 0)
        x = require(b, x, rest, f"channels in {groups} equal groups")
    if sum(d == DYN for d in dims) > 1:
        shape = b.shape(x)
        split = b.concat([b.shape(x, 0, 1), b.ints([groups, -1])], axis=0)
        y, _, _ = standardized(b, b.reshape(x, split), [2], epsilon)
        return b.reshape(y, shape, allowzero=True)
    n = -1 if dims[0] == DYN else dims[0]
    rest = -1 if n != -1 else math.prod(dims[1:]) // groups
    y, _, _ = standardized(b, b.reshape(x, dims=[n, groups, rest]), [2], epsilon)
    return b.reshape(y, dims=[-1 if d == DYN else d for d in dims])


def _check_groups(dims: Sequence[int], groups: int) -> None:
    """Raise ModelError if the channels are known not to divide into equal groups."""
    if len(dims) < 2 or groups < 1 or (dims[1] != DYN and dims[1] % groups):
        raise ModelError(
            f"num_groups {groups} does not divide the channels of dims {show_dims(dims)}"
        )


@onnx_op("GroupNormalization", since=18)
def group_normalization_18(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    epsilon: float = 1e-5,
    num_groups: int,
) -> Value:
    """Import GroupNormalization of opset 18: scale and bias per group, repeated for its channels.

    Some exporters write one for each channel, as from opset 21 on.
    """
    dims = b.dims(x)
    _check_groups(dims, num_groups)
    if dims[1] == DYN:
        raise NotSupported("scales of groups with a number of channels known only at run time")
    each = dims[1] // num_groups

    def per_channel(v: Value) -> Value:
        if b.dims(v) == (dims[1],):
            return v
        wide_v = b.multibroadcast(unsqueeze(b, v, [1]), [num_groups, each])
        return reshape(b, wide_v, [dims[1]])

    return group_normalization(
        b, node, x, per_channel(scale), per_channel(bias), epsilon=epsilon, num_groups=num_groups
    )


@onnx_op("LRN", since=1)
def lrn(
    b: Builder,
    node: Node,
    x: Value,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    size: int,
) -> Value:
    """Import LRN: divide by a power of the sum of squares of `size` neighbouring channels."""
    return b.lrn(x, alpha=alpha, beta=beta, bias=bias, size=size)


@onnx_op("LpNormalization", since=1)
def lp_normalization(b: Builder, node: Node, x: Value, *, axis: int = -1, p: int = 2) -> Value:
    """Import LpNormalization: x over its norm along `axis`; if the norm is 0, the result is 0."""
    dtype = b.dtype(x)
    axis = axis_in(axis, len(b.dims(x)))
    wide_x = convert(b, x, wide(dtype))
    if p == 1:
        norm = b.reduce_sum(b.abs(wide_x), axes=[axis])
    elif p == 2:
        norm = b.sqrt(b.reduce_sum(b.mul(wide_x, wide_x), axes=[axis]))
    else:
        raise ModelError(f"p expected 1 or 2, got {p}")
    zero = b.convert(b.equal(norm, 0), target_type=dtypes.BOOL)
    safe = b.where(zero, 1, norm)
    return convert(b, b.where(zero, 0, b.div(wide_x, safe)), dtype)


@onnx_op("MeanVarianceNormalization", since=9)
def mean_variance_normalization(
    b: Builder, node: Node, x: Value, *, axes: Sequence[int] = (0, 2, 3)
) -> Value:
    """Import MeanVarianceNormalization: (x - mean) / (deviation + 1e-9), as ONNX's function
    body.
    """
    dtype = b.dtype(x)
    axes = axes_in(axes, len(b.dims(x)))
    wide_x = convert(b, x, wide(dtype))
    centred = b.sub(wide_x, b.reduce_mean(wide_x, axes=axes))
    deviation = b.sqrt(b.reduce_mean(b.mul(centred, centred), axes=axes))
    return convert(b, b.div(centred, b.add(deviation, 1e-9)), dtype)
