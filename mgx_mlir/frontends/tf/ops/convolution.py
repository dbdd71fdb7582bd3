"""Convolutions, transposed convolutions, and bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.extents import elements, extents, plus, reshaped, vector
from mgx_mlir.frontends.helpers import along, known_extent, reshape, slice_, static_dims, transpose
from mgx_mlir.frontends.signatures import Attributes
from mgx_mlir.frontends.tf.layout import spatial, to_first, to_last, window_attributes
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.frontends.windows import same_padding
from mgx_mlir.programs.build import Builder


@dataclass(frozen=True)
class ConvAttributes(Attributes):
    """Attributes of a convolution's window."""

    strides: Sequence[int]
    padding: str
    explicit_paddings: Sequence[int] = ()
    data_format: str | None = None
    dilations: Sequence[int] = ()


def _convolve(
    b: Builder, node: Node, x: Value, weights: Value, group: int | None, a: ConvAttributes
) -> Value:
    """Return a convolution; weights are (out, in / group, kernel..)."""
    last = node.channels_last(a.data_format)
    rank = len(b.dims(x))
    kernel = static_dims(b, weights, "filter")[2:]
    if rank != len(kernel) + 2:
        raise ModelError(f"input expected rank {len(kernel) + 2}, got {rank}")
    x = to_first(b, x) if last else x
    stride = spatial(a.strides, rank, last, "strides")
    dilation = spatial(a.dilations, rank, last, "dilations")
    window = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = window_attributes(b, a.padding, a.explicit_paddings, b.dims(x)[2:], window, stride, last)
    if group is None:
        own = b.dims(weights)[1]
        x = known_extent(b, x, 1, own, "an input") if b.dims(x)[1] == DYN else x  # one group
        channels = b.dims(x)[1]
        if own == 0 or channels % own:
            raise ModelError(f"the filter's {own} channels do not fit the input's {channels}")
        group = channels // own
    y = b.convolution(x, weights, stride=stride, dilation=dilation, group=group, **pads)
    return to_last(b, y) if last else y


def _filter(b: Builder, w: Value) -> Value:
    """(kernel.., in, out) -> (out, in, kernel..)."""
    rank = len(static_dims(b, w, "filter"))
    return transpose(b, w, [rank - 1, rank - 2, *range(rank - 2)])


def _depthwise_filter(b: Builder, w: Value) -> tuple[Value, int]:
    """(height, width, channel, number) -> (channel * number, 1, height, width); return it and the
    channels.
    """
    dims = static_dims(b, w, "filter")
    if len(dims) != 4:
        raise ModelError(f"filter expected rank 4, got {len(dims)}")
    height, width, channels, number = dims
    weights = reshape(b, transpose(b, w, [2, 3, 0, 1]), [channels * number, 1, height, width])
    return weights, channels


@tf_op("Conv2D", "Conv3D")
def conv(b: Builder, node: Node, x: Value, w: Value, *, window: ConvAttributes) -> Value:
    """Import Conv2D and Conv3D, in either data format."""
    return _convolve(b, node, x, _filter(b, w), None, window)


@tf_op("DepthwiseConv2dNative")
def depthwise_conv(b: Builder, node: Node, x: Value, w: Value, *, window: ConvAttributes) -> Value:
    """Import DepthwiseConv2dNative: separate filters per channel, (kernel.., channel, number)."""
    weights, channels = _depthwise_filter(b, w)
    return _convolve(b, node, x, weights, channels, window)


@tf_op("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_transpose(
    b: Builder, node: Node, sizes: Value, w: Value, x: Value, *, window: ConvAttributes
) -> Value:
    """Import Conv2DBackpropInput: the transposed convolution of `x` to dims `sizes`."""
    # weights: (channels of x, channels of the result, kernel..)
    return _transposed(b, node, sizes, _filter(b, w), 1, x, window)


@tf_op("DepthwiseConv2dNativeBackpropInput")
def depthwise_conv_transpose(
    b: Builder, node: Node, sizes: Value, w: Value, x: Value, *, window: ConvAttributes
) -> Value:
    """Import DepthwiseConv2dNativeBackpropInput: a depthwise transposed convolution."""
    weights, channels = _depthwise_filter(b, w)
    return _transposed(b, node, sizes, weights, channels, x, window)


def _transposed(
    b: Builder,
    node: Node,
    sizes: Value,
    weights: Value,
    group: int,
    x: Value,
    a: ConvAttributes,
) -> Value:
    """Return the part `sizes` of the whole transposed convolution."""
    last, explicit = node.channels_last(a.data_format), a.explicit_paddings
    rank = len(b.dims(x))
    n = rank - 2
    kernel = static_dims(b, weights, "filter")[2:]
    if n != len(kernel):
        raise ModelError(f"input expected rank {len(kernel) + 2}, got {rank}")
    wanted = elements(b, sizes)
    if len(wanted) == rank:
        wanted = wanted[1:-1] if last else wanted[2:]
    elif len(wanted) != n:
        raise ModelError(f"sizes expected {rank} numbers, got {len(wanted)}")
    stride = spatial(a.strides, rank, last, "strides")
    dilation = spatial(a.dilations, rank, last, "dilations")
    x = to_first(b, x) if last else x
    window = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    full = b.convolution_backwards(
        x, weights, padding=[0] * n, stride=stride, dilation=dilation, group=group
    )
    have = b.dims(full)[2:]
    static = [w for w in wanted if isinstance(w, int)]
    if len(static) == n and DYN not in have:
        pads = window_attributes(b, a.padding, explicit, static, window, stride, last)["padding"]
        begin = list(pads[:n])
        missing = [max(s + w - h, 0) for s, w, h in zip(begin, static, have, strict=True)]
        if any(missing):
            full = b.pad(full, pads=[0] * (n + 4) + missing)
        ends = [s + w for s, w in zip(begin, static, strict=True)]
        full = slice_(b, full, list(range(2, rank)), begin, ends)
        return to_last(b, full) if last else full
    # up to stride - 1 elements follow the last window
    full = b.pad(full, pads=[0] * (n + 4) + [s - 1 for s in stride])
    if a.padding == "SAME":
        inner = extents(b, x)[2:]
        begins = [
            same_padding(b, w, d, s, k)[0]
            for d, w, k, s in zip(inner, wanted, window, stride, strict=True)
        ]
    else:
        pads = window_attributes(b, a.padding, explicit, [0] * n, window, stride, last)["padding"]
        begins = pads[:n]
    ends = [plus(b, s, w) for s, w in zip(begins, wanted, strict=True)]
    out = b.op("slice", full, vector(b, begins), vector(b, ends), axes=list(range(2, rank)))
    if static:
        parts = [*extents(b, full)[:2], *wanted]
        own = extents(b, out)
        out = reshaped(
            b, out, [p if isinstance(p, int) else o for p, o in zip(parts, own, strict=True)]
        )
    return to_last(b, out) if last else out


@tf_op("BiasAdd", "BiasAddV1")
def bias_add(
    b: Builder, node: Node, x: Value, bias: Value, *, data_format: str | None = None
) -> Value:
    """Import BiasAdd: a bias along the channels, the last axis or axis 1."""
    rank = len(b.dims(x))
    if rank < 2 or len(b.dims(bias)) != 1:
        raise ModelError(f"expected a value of rank 2 or more and a vector, got ranks {rank} and "
                         f"{len(b.dims(bias))}")  # fmt: skip
    last = node.channels_last(data_format) or rank == 2
    return b.add(x, along(b, bias, x, rank - 1 if last else 1))
