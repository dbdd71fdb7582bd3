"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import extents, reshaped
from mgx_mlir.frontends.helpers import axis_range, convert, slice_, static_dims, unsqueeze
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.shaping import slice_known
from mgx_mlir.frontends.tf.layout import spatial, to_first, to_last, window_attributes
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
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
    pads = window_attributes(padding, explicit, b.dims(x)[2:], lengths, stride, last)
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
    """Average windows; padding does not count."""
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
    """Return the maxima, and the flat place of each in its image: argmax over gathered windows."""
    dims = b.dims(x)
    if len(dims) != 4 or DYN in dims[1:]:
        raise NotSupported("inputs other than {N, H, W, C} with known H, W, C")
    lengths, stride = (spatial(v, 4, True, "window") for v in (ksize, strides))
    inner = dims[1:3]
    pads = window_attributes(padding, (), inner, lengths, stride, True)["padding"]
    begin, end = pads[:2], pads[-2:]
    limits.table((*inner, *lengths), "places in windows")
    places, valid = [], []
    for d, k, s, p, q in zip(inner, lengths, stride, begin, end, strict=True):
        at = np.arange((d + p + q - k) // s + 1)[:, None] * s + np.arange(k)[None, :] - p
        places.append(np.clip(at, 0, d - 1))
        valid.append((at >= 0) & (at < d))
    rows, columns = (p.shape[0] for p in places)
    taps = lengths[0] * lengths[1]
    flat = places[0][:, None, :, None] * inner[1] + places[1][None, :, None, :]
    inside = valid[0][:, None, :, None] & valid[1][None, :, None, :]
    flat, inside = flat.reshape(rows * columns, taps), inside.reshape(rows * columns, taps)
    channels = dims[3]
    n = extents(b, x)[0]
    pixels = reshaped(b, x, [n, inner[0] * inner[1], channels])
    windows = b.gather(pixels, b.literal(flat), axis=1)  # images, places, taps, channels
    lowest = b.literal(np.array(b.dtype(x).lowest(), b.dtype(x).np))
    windows = b.where(b.literal(inside[:, :, None]), windows, lowest)
    best = b.argmax(windows, axis=2)
    first = b.literal((np.arange(rows * columns) * taps)[:, None, None])
    pixel = b.gather(b.literal(flat.reshape(-1)), b.add(best, first), axis=0)
    found = b.add(b.mul(pixel, channels), b.literal(np.arange(channels)))
    if include_batch_in_index:
        image = b.mul(axis_range(b, x, 0), inner[0] * inner[1] * channels)
        found = b.add(found, unsqueeze(b, image, [1, 2, 3]))
    out = [n, rows, columns, channels]
    top = b.reduce_max(windows, axes=[2])
    return reshaped(b, top, out), convert(b, reshaped(b, found, out), Targmax)


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
    """Return the largest of x + w over each window, channel by channel: one term per tap."""
    dims, kernel = b.dims(x), static_dims(b, w, "filter")
    if len(dims) != 4 or len(kernel) != 3 or DYN in dims[1:3]:
        raise NotSupported("inputs other than {N, H, W, C} with known H and W")
    stride, rate = (spatial(v, 4, True, "window") for v in (strides, rates))
    window = [(k - 1) * r + 1 for k, r in zip(kernel[:2], rate, strict=True)]
    pads = window_attributes(padding, (), dims[1:3], window, stride, True)["padding"]
    begin, end = pads[:2], pads[-2:]
    dtype, around = b.dtype(x), [0, *begin, 0, 0, *end, 0]
    limits.table([sum(v) for v in zip(dims[1:3], begin, end, strict=True)], "places")
    inside = np.pad(
        np.ones((1, *dims[1:3], 1), bool), [(0, 0), *zip(begin, end, strict=True), (0, 0)]
    )
    x = b.pad(x, pads=around, value=float(dtype.lowest()) if dtype.is_float else 0.0)
    height, width = b.dims(x)[1:3]
    lowest = b.literal(np.array(dtype.lowest(), dtype.np))
    out = None
    limits.parts(kernel[0] * kernel[1], "taps of a window")
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            starts = [i * rate[0], j * rate[1]]
            ends = [height - window[0] + starts[0] + 1, width - window[1] + starts[1] + 1]
            part = slice_known(b, x, starts, ends, [1, 2], stride)
            tap = b.reshape(slice_(b, w, [0, 1], [i, j], [i + 1, j + 1]), dims=[kernel[2]])
            term = b.add(part, tap)
            if dtype.is_integer and not inside.all():  # the lowest and a tap would wrap
                at = inside[:, starts[0] : ends[0] : stride[0], starts[1] : ends[1] : stride[1]]
                term = b.where(b.literal(np.ascontiguousarray(at)), term, lowest)
            out = term if out is None else b.max(out, term)
    assert out is not None
    return out
