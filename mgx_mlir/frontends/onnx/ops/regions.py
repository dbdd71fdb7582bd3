"""Regions of images: RoiAlign, MaxRoiPool, DeformConv, Col2Im."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.extents import (
    Extent,
    extents,
    known,
    minus,
    plus,
    quotient,
    reshape_to_sizes,
    reshaped,
    scalar,
    spread,
    times,
)
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    channel_dims,
    compare,
    convert,
    extent,
    extent_as,
    greater_equal,
    known_extent,
    number,
    require,
    reshape,
    same_extent,
    slice_,
    squeeze,
    static_dims,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.conv import biased, weights_in
from mgx_mlir.frontends.onnx.ops.sampling import axis_taps, tap
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.runtime_axes import element, length
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

# ---- RoiAlign, MaxRoiPool ----------------------------------------------------------------------


@onnx_op("RoiAlign", since=16)
def roi_align(
    b: Builder,
    node: Node,
    x: Value,
    rois: Value,
    batch: Value,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Value:
    """Import RoiAlign."""
    if mode not in ("avg", "max"):
        raise ModelError(f"attribute 'mode' expected avg or max, got {mode}")
    batch = within(b, batch, "batch_indices", 0, Dim(x, 0, "the number of images"))
    return b.roialign(
        x,
        rois,
        convert(b, batch, INT64),
        coordinate_transformation_mode=coordinate_transformation_mode,
        mode="average" if mode == "avg" else mode,
        output_height=output_height,
        output_width=output_width,
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
    )


@onnx_op("RoiAlign", since=10)
def roi_align_10(
    b: Builder,
    node: Node,
    x: Value,
    rois: Value,
    batch: Value,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Value:
    """Import RoiAlign of opsets 10 to 15, which does not shift by half a pixel."""
    return roi_align(
        b, node, x, rois, batch, coordinate_transformation_mode="output_half_pixel", mode=mode,
        output_height=output_height, output_width=output_width, sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
    )  # fmt: skip


@onnx_op("MaxRoiPool", since=1)
def max_roi_pool(
    b: Builder,
    node: Node,
    x: Value,
    rois: Value,
    *,
    pooled_shape: Sequence[int],
    spatial_scale: float = 1.0,
) -> Value:
    """Import MaxRoiPool: the maximum of each bin of whole pixels; 0 for an empty bin.

    A bin is a mask along each axis, so that the maximum is taken of columns, then of rows.
    """
    if len(b.dims(x)) != 4 or len(pooled_shape) != 2 or b.dims(rois)[1:] != (5,):
        raise ModelError(
            f"expected images of rank 4, two pooled dims and rois of 5 numbers, got dims "
            f"{show_dims(b.dims(x))}, {list(pooled_shape)} and {show_dims(b.dims(rois))}"
        )
    kind = wide(b.dtype(x))
    images = Dim(x, 0, "the number of images")
    rois = within(b, rois, "the batch indices of rois", 0, images, column=0)
    batch = squeeze(b, slice_(b, rois, [1], [0], [1]), [1])
    images = b.gather(x, convert(b, batch, INT64), axis=0)  # roi, channel, row, column
    corners = _rounded(b, convert(b, rois, kind), spatial_scale)
    lowest = number(b, b.dtype(x).lowest(), x)
    some: Value | None = None
    for axis, bins in ((3, pooled_shape[1]), (2, pooled_shape[0])):
        begin, end = (
            squeeze(b, slice_(b, corners, [1], [i], [i + 1]), [1])
            for i in ((1, 3) if axis == 3 else (2, 4))
        )
        inside = _bins(b, begin, end, bins, axis_range(b, x, axis, kind))  # roi, bin, position
        # the position is reduced, and the bin takes its axis
        spread = unsqueeze(b, inside, [1, 2] if axis == 3 else [1, 4])
        kept = b.where(spread, unsqueeze(b, images, [axis]), lowest)
        images = squeeze(b, b.reduce_max(kept, axes=[axis + 1]), [axis + 1])
        any_ = squeeze(b, b.reduce_max(convert(b, inside, INT64), axes=[2]), [2])
        hit = unsqueeze(b, compare(b, "greater", any_, 0), [1, 2] if axis == 3 else [1, 3])
        some = hit if some is None else b.logical_and(some, hit)
    return b.where(some, images, number(b, 0, images))


def _rounded(b: Builder, rois: Value, scale: float) -> Value:
    """round(roi * scale), halves away from zero."""
    scaled = b.mul(rois, scale)
    up = b.floor(b.add(b.abs(scaled), 0.5))
    return b.where(compare(b, "less", scaled, 0), b.neg(up), up)


def _bins(b: Builder, begin: Value, end: Value, bins: int, places: Value) -> Value:
    """Return whether a position (last axis) lies in a bin (axis 1) of a region (axis 0)."""
    begin, end = (unsqueeze(b, v, [1]) for v in (begin, end))
    size = b.div(b.max(b.add(b.sub(end, begin), 1), 1), float(bins))
    index = unsqueeze(b, arange(b, bins, b.dtype(size)), [0])
    first = b.add(b.floor(b.mul(index, size)), begin)
    last = b.add(b.ceil(b.mul(b.add(index, 1), size)), begin)
    first, last = (unsqueeze(b, v, [2]) for v in (first, last))
    return b.logical_and(greater_equal(b, places, first), compare(b, "less", places, last))


# ---- DeformConv --------------------------------------------------------------------------------


@onnx_op("DeformConv", since=19)
def deform_conv(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Import DeformConv: sample the channels of each offset group at every kernel point, then one
    dot.
    """
    w = weights_in(b, w, kernel_shape)
    dims, weights, moved = b.dims(x), static_dims(b, w, "weights"), b.dims(offset)
    n = len(dims) - 2
    if n < 1 or len(weights) != n + 2 or len(moved) != n + 2:
        raise ModelError(
            f"expected input, weights and offsets of one rank, 3 or more, got {len(dims)}, "
            f"{len(weights)} and {len(moved)}"
        )
    kernel = list(weights[2:])
    if kernel_shape is not None and list(kernel_shape) != kernel:
        raise ModelError(f"kernel_shape {list(kernel_shape)} differs from weights {list(weights)}")
    count, channels = math.prod(kernel), group * weights[1]
    x = known_extent(b, x, 1, channels, "an input")
    offset = known_extent(b, offset, 1, offset_group * count * n, "offsets")
    dims, moved = b.dims(x), b.dims(offset)
    if moved[1] != offset_group * count * n or dims[1] != channels or channels % offset_group:
        raise ModelError(
            f"{offset_group} offset groups of {count} kernel points do not fit offsets of dims "
            f"{show_dims(moved)} for {dims[1]} channels, {channels} in the weights"
        )
    stride, dilation = strides or [1] * n, dilations or [1] * n
    pads = list(pads or [0] * 2 * n)
    offset = same_extent(b, offset, 0, x, 0, "as many offsets as images")
    size = extents(b, x)
    for i in range(n):
        span = plus(b, size[i + 2], pads[i] + pads[n + i] - (kernel[i] - 1) * dilation[i] - 1)
        wanted = plus(b, quotient(b, span, stride[i]), 1)
        fits = compare(b, "equal", extent(b, offset, i + 2), scalar(b, wanted))
        offset = require(b, offset, fits, f"offsets of the result's extents along dim {i + 2}")
    batch, *out = (e for i, e in enumerate(extents(b, offset)) if i != 1)
    dtype = b.dtype(x)
    kind = wide(dtype)
    both = times(b, batch, offset_group)
    shift = reshaped(b, convert(b, offset, kind), [both, count, n, *out])
    axes = []
    for i in range(n):
        point = np.arange(kernel[i]) * dilation[i] - pads[i]
        grid = point.reshape(channel_dims(n, i)) + np.zeros([*kernel])
        step = b.mul(arange(b, out[i], kind), stride[i])
        at = b.add(
            b.literal(grid.reshape(count, *[1] * n).astype(kind.np)),
            unsqueeze(b, step, [j for j in range(n + 1) if j != i + 1]),
        )
        moved_by = squeeze(b, slice_(b, shift, [2], [i], [i + 1]), [2])
        last = dims[i + 2] - 1.0
        if dims[i + 2] == DYN:
            last = b.sub(extent_as(b, x, i + 2, kind), 1)
        axes.append(axis_taps(b, b.add(moved_by, at), last, "linear", "zeros", 0.0))
    image = reshaped(b, convert(b, x, kind), [both, channels // offset_group, *size[2:]])
    image = transpose(b, image, [0, *range(2, n + 2), 1])
    total = None
    for taps in itertools.product(*axes):
        term = tap(b, image, taps, n + 1)
        total = term if total is None else b.add(total, term)
    if mask is not None:
        mask = known_extent(b, mask, 1, offset_group * count, "a mask")
        for i in (0, *range(2, n + 2)):
            mask = same_extent(b, mask, i, offset, i, f"a mask of the offsets' dim {i}")
        total = b.mul(total, reshaped(b, convert(b, mask, kind), [both, count, *out, 1]))
    assert total is not None
    # offset group, kernel point, spatial.., channel -> group, channel * kernel point, spatial
    samples = transpose(b, total, [0, n + 2, *range(1, n + 2)])
    area = functools.reduce(lambda a, c: times(b, a, c), out)
    samples = reshaped(b, samples, [batch, group, weights[1] * count, area])
    kernels = reshape(b, convert(b, w, kind), [1, group, weights[0] // group, -1])
    kernels = spread(b, kernels, [batch, *b.dims(kernels)[1:]])
    found = reshaped(b, b.dot(kernels, samples), [batch, weights[0], *out])
    return biased(b, convert(b, found, dtype), bias)


# ---- Col2Im ------------------------------------------------------------------------------------


@onnx_op("Col2Im", since=18)
def col2im(
    b: Builder,
    node: Node,
    x: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Import Col2Im: sum overlapping columns axis by axis; each position gathers from every block
    position.

    Position p of the image is position k of block l if p + pad = l * stride + k * dilation.
    """
    n = length(b, image_shape, "image_shape")
    if len(b.dims(x)) != 3 or length(b, block_shape, "block_shape") != n:
        raise ModelError(f"expected rank 3 and as many block dims as the image's {n}")
    dilation, stride = dilations or [1] * n, strides or [1] * n
    pad = list(pads or [0] * 2 * n)
    image_shape = within(b, image_shape, "image_shape", 1)
    block_shape = within(b, block_shape, "block_shape", 1)
    sizes = [known(b, element(b, image_shape, i)) for i in range(n)]
    kernel = [known(b, element(b, block_shape, i)) for i in range(n)]
    blocks = []
    for i in range(n):
        reach = times(b, minus(b, kernel[i], 1), dilation[i])
        span = minus(b, plus(b, sizes[i], pad[i] + pad[n + i] - 1), reach)
        blocks.append(plus(b, quotient(b, span, stride[i]), 1))
    batch = [known(b, extent(b, x, 0))]
    taps = [k for k in kernel if isinstance(k, int)]
    known_channels = len(taps) == n and b.dims(x)[1] != DYN
    channels: Extent = b.dims(x)[1] // max(math.prod(taps), 1) if known_channels else -1
    dtype = b.dtype(x)
    x = reshape_to_sizes(b, convert(b, x, wide(dtype)), [*batch, channels, *kernel, *blocks])
    x = transpose(b, x, [0, 1, *(j for i in range(n) for j in (i + 2, i + 2 + n))])
    for i in range(n):
        # batch, channel, finished positions.., [k, l, rest..]
        axis = i + 2
        places = unsqueeze(b, arange(b, sizes[i]), [1])
        steps = unsqueeze(b, arange(b, kernel[i]), [0])
        at = b.sub(b.add(places, pad[i]), b.mul(steps, dilation[i]))
        block = b.div(b.max(at, 0), stride[i])
        exact = compare(b, "equal", b.mul(block, stride[i]), at)
        valid = b.logical_and(exact, compare(b, "less", block, blocks[i]))
        last = b.sub(scalar(b, blocks[i]), 1)
        flat = b.add(b.mul(steps, blocks[i]), b.min(block, last))
        rest = [v for j in range(i + 1, n) for v in (kernel[j], blocks[j])]
        merged = times(b, kernel[i], blocks[i])
        channels = known(b, extent(b, x, 1))
        x = reshape_to_sizes(b, x, [*batch, channels, *sizes[:i], merged, *rest])
        rank = len(b.dims(x))
        found = b.gather(x, flat, axis=axis)  # .., position, k, rest..
        valid = unsqueeze(b, valid, range(2, 2 + rank - axis - 1))
        kept = b.where(valid, found, number(b, 0, found))
        x = squeeze(b, b.reduce_sum(kept, axes=[axis + 1]), [axis + 1])
    return convert(b, x, dtype)
