"""Convolutions, their transposes, and the bias behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.build import Builder
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.helpers import (
    Value,
    along,
    known_extents,
    reshape,
    static_dims,
    transpose,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.layout import spatial, to_first, to_last, window_attributes
from mgx_mlir.frontends.tf.registry import tf_op


def _convolve(
    b: Builder,
    node: Any,
    x: Value,
    weights: Value,
    group: int | None,
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    data_format: str | None,
    dilations: Sequence[int],
) -> Value:
    """Weights are (out, in / group, kernel..)."""
    last = node.channels_last(data_format)
    rank = len(b.dims(x))
    kernel = static_dims(b, weights, "filter")[2:]
    if rank != len(kernel) + 2:
        raise ModelError(f"input expected rank {len(kernel) + 2}, got {rank}")
    x = to_first(b, x) if last else x
    stride = spatial(strides, rank, last, "strides")
    dilation = spatial(dilations, rank, last, "dilations")
    window = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = window_attributes(padding, explicit, b.dims(x)[2:], window, stride, last)
    if group is None:
        channels, own = b.dims(x)[1], b.dims(weights)[1]
        if channels == DYN or own == 0 or channels % own:
            raise ModelError(f"the filter's {own} channels do not fit the input's {channels}")
        group = channels // own
    y = b.convolution(x, weights, stride=stride, dilation=dilation, group=group, **pads)
    return to_last(b, y) if last else y


def _filter(b: Builder, w: Value) -> Value:
    """(kernel.., in, out) -> (out, in, kernel..)."""
    rank = len(static_dims(b, w, "filter"))
    return transpose(b, w, [rank - 1, rank - 2, *range(rank - 2)])


@tf_op("Conv2D", "Conv3D")
def conv(
    b: Builder,
    node: Any,
    x: Value,
    w: Value,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str | None = None,
    dilations: Sequence[int] = (),
) -> Value:
    return _convolve(
        b, node, x, _filter(b, w), None, strides, padding, explicit_paddings, data_format, dilations
    )


@tf_op("DepthwiseConv2dNative")
def depthwise_conv(
    b: Builder,
    node: Any,
    x: Value,
    w: Value,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str | None = None,
    dilations: Sequence[int] = (),
) -> Value:
    """Every channel has filters of its own: (kernel.., channel, number)."""
    dims = static_dims(b, w, "filter")
    if len(dims) != 4:
        raise ModelError(f"filter expected rank 4, got {len(dims)}")
    height, width, channels, number = dims
    weights = reshape(b, transpose(b, w, [2, 3, 0, 1]), [channels * number, 1, height, width])
    return _convolve(
        b, node, x, weights, channels, strides, padding, explicit_paddings, data_format, dilations
    )


@tf_op("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_transpose(
    b: Builder,
    node: Any,
    sizes: Value,
    w: Value,
    x: Value,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str | None = None,
    dilations: Sequence[int] = (),
) -> Value:
    """The gradient of a convolution from dims `sizes`: the transposed convolution of `x`."""
    last = node.channels_last(data_format)
    rank = len(b.dims(x))
    weights = _filter(b, w)  # (channels of x, channels of the result, kernel..)
    kernel = static_dims(b, weights, "filter")[2:]
    if rank != len(kernel) + 2:
        raise ModelError(f"input expected rank {len(kernel) + 2}, got {rank}")
    wanted = _extents(b, sizes)
    if len(wanted) == rank:
        wanted = wanted[1:-1] if last else wanted[2:]
    elif len(wanted) != rank - 2:
        raise ModelError(f"sizes expected {rank} numbers, got {len(wanted)}")
    stride = spatial(strides, rank, last, "strides")
    dilation = spatial(dilations, rank, last, "dilations")
    x = to_first(b, x) if last else x
    n = rank - 2
    if DYN in wanted or DYN in b.dims(x)[2:]:
        raise NotSupported("a transposed convolution to dynamic spatial dims")
    window = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    found = window_attributes(padding, explicit_paddings, wanted, window, stride, last)["padding"]
    full = b.convolution_backwards(
        x, weights, padding=[0] * n, stride=stride, dilation=dilation, group=1
    )
    have = b.dims(full)[2:]
    begin = list(found[:n])
    missing = [max(s + w - h, 0) for s, w, h in zip(begin, wanted, have, strict=True)]
    if any(missing):
        full = b.pad(full, pads=[0] * (n + 4) + missing)
    if any(begin) or list(wanted) != list(b.dims(full)[2:]):
        full = b.slice(
            full,
            axes=list(range(2, rank)),
            starts=begin,
            ends=[s + w for s, w in zip(begin, wanted, strict=True)],
        )
    return to_last(b, full) if last else full


def _extents(b: Builder, sizes: Value) -> list[int]:
    """The elements of a vector of extents, DYN where they depend on a dynamic dim."""
    known = b.const(sizes)
    if known is not None:
        return [int(d) for d in known.reshape(-1)]
    found = known_extents(b, sizes)
    if found is None:
        raise NotSupported("'input_sizes' is computed at run time")
    return found


@tf_op("BiasAdd", "BiasAddV1")
def bias_add(
    b: Builder, node: Any, x: Value, bias: Value, *, data_format: str | None = None
) -> Value:
    """The bias runs along the channels: the last axis, or axis 1."""
    rank = len(b.dims(x))
    if rank < 2 or len(b.dims(bias)) != 1:
        raise ModelError(f"expected a value of rank 2 or more and a vector, got ranks {rank} and "
                         f"{len(b.dims(bias))}")  # fmt: skip
    last = node.channels_last(data_format) or rank == 2
    return b.add(x, along(b, bias, x, rank - 1 if last else 1))
