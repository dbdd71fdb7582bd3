"""Pooling over windows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import BOOL, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import extents, product, scalar, zeros_of
from mgx_mlir.frontends.helpers import arange, convert, slice_, static_dims, unsqueeze
from mgx_mlir.frontends.shaping import slice_known
from mgx_mlir.frontends.tf.layout import (
    spatial,
    to_first,
    to_last,
    window_attributes,
    window_ends,
)
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.cutting import around_windows
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.frontends.windows import WindowAxis, max_places, same_padding
from mgx_mlir.programs.build import Builder


def pool(
    b: Builder,
    node: Node,
    x: Value,
    mode: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    data_format: str | None,
) -> Value:
    """Pool the spatial axes of `x` in the node's layout."""
    last = node.channels_last(data_format)
    rank = len(b.dims(x))
    lengths = spatial(ksize, rank, last, "ksize")
    stride = spatial(strides, rank, last, "strides")
    x = to_first(b, x) if last else x
    pads = window_attributes(b, padding, explicit, b.dims(x)[2:], lengths, stride, last)
    y = b.pooling(
        x, mode=mode, lengths=lengths, stride=stride, dilations=[1] * len(lengths), **pads
    )
    return to_last(b, y) if last else y


@tf_op("MaxPool", "MaxPool3D")
def max_pool(
    b: Builder,
    node: Node,
    x: Value,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str | None = None,
) -> Value:
    """Import MaxPool and MaxPool3D."""
    return pool(b, node, x, "max", ksize, strides, padding, explicit_paddings, data_format)


@tf_op("MaxPoolV2")
def max_pool_v2(
    b: Builder,
    node: Node,
    x: Value,
    ksize: Value,
    strides: Value,
    *,
    padding: str,
    data_format: str | None = None,
) -> Value:
    """Import MaxPoolV2, whose window is an operand."""
    sizes, steps = node.ints(ksize, "ksize"), node.ints(strides, "strides")
    return pool(b, node, x, "max", sizes, steps, padding, (), data_format)


@tf_op("AvgPool", "AvgPool3D")
def avg_pool(
    b: Builder,
    node: Node,
    x: Value,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str | None = None,
) -> Value:
    """Import AvgPool; padding does not count."""
    return pool(b, node, x, "average", ksize, strides, padding, (), data_format)


@tf_op("MaxPoolWithArgmax", outputs=("output", "argmax"))
def max_pool_with_argmax(
    b: Builder,
    node: Node,
    x: Value,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    Targmax: DType = INT64,
    include_batch_in_index: bool = False,
) -> Outputs:
    """Import MaxPoolWithArgmax: the maxima, and the flat index of each in its image."""
    top = pool(b, node, x, "max", ksize, strides, padding, (), "NHWC")
    lengths, stride = (spatial(v, 4, True, "window") for v in (ksize, strides))
    n, height, width, channels = extents(b, x)
    counts, axes = extents(b, top)[1:3], []
    for d, count, k, s in zip((height, width), counts, lengths, stride, strict=True):
        begin = same_padding(b, d, count, s, k)[0] if padding == "SAME" else 0
        axes.append(WindowAxis(count, k, s, 1, begin))
    pixel = to_last(b, max_places(b, to_first(b, x), axes, column_major=False))
    found = b.add(b.mul(pixel, scalar(b, channels)), arange(b, channels))
    if include_batch_in_index:
        image = b.mul(arange(b, n), scalar(b, product(b, [height, width, channels])))
        found = b.add(found, unsqueeze(b, image, [1, 2, 3]))
    return top, convert(b, found, Targmax)


@tf_op("Dilation2D")
def dilation(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Value:
    """Import Dilation2D: the largest x + w over each window, by channel: one term per tap."""
    kernel, dtype = static_dims(b, w, "filter"), b.dtype(x)
    if len(kernel) != 3:
        raise ModelError(f"filter expected rank 3, got {len(kernel)}")
    stride, rate = (spatial(v, 4, True, "window") for v in (strides, rates))
    window = [(k - 1) * r + 1 for k, r in zip(kernel[:2], rate, strict=True)]
    lowest = b.literal(np.array(dtype.lowest(), dtype.np))
    inside = None
    if dtype.is_integer and padding == "SAME":  # the lowest number plus a tap would wrap
        ones = zeros_of(b, [1, *extents(b, x)[1:3], 1], BOOL, 1)
        inside = around_windows(b, ones, padding, window, stride)
    around = 0 if dtype.is_integer else float(dtype.lowest())
    x = around_windows(b, x, padding, window, stride, around)
    limits.parts(kernel[0] * kernel[1], "taps of a window")
    out = None
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        starts = [i * rate[0], j * rate[1]]
        cut = starts, window_ends(window, starts), [1, 2], stride
        tap = b.reshape(slice_(b, w, [0, 1], [i, j], [i + 1, j + 1]), dims=[kernel[2]])
        term = b.add(slice_known(b, x, *cut), tap)
        if inside is not None:
            term = b.where(slice_known(b, inside, *cut), term, lowest)
        out = term if out is None else b.max(out, term)
    assert out is not None
    return out
