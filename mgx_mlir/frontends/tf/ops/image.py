"""Colours, patches and projective transforms of images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import elements, extents, reshaped, scalar, spread, times
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    concat,
    convert,
    known_extent,
    number,
    single,
    slice_,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.shaping import slice_known
from mgx_mlir.frontends.tf.layout import spatial, window_ends
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.cutting import around_windows
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

# ---- colours -----------------------------------------------------------------------------------


def _channels(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    rank = len(b.dims(x))
    if rank < 1 or b.dims(x)[-1] not in (3, DYN):
        raise ModelError(f"expected 3 channels last, got dims {show_dims(b.dims(x))}")
    x = known_extent(b, x, rank - 1, 3, "channels")
    r, g, c = (slice_(b, x, [rank - 1], [i], [i + 1]) for i in range(3))
    return r, g, c


def to_hsv(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """Convert to hue, saturation and value, each within [0, 1]."""
    r, g, c = _channels(b, x)
    top = b.max(b.max(r, g), c)
    spread = b.sub(top, b.min(b.min(r, g), c))
    zero, one = number(b, 0, x), number(b, 1, x)
    flat = compare(b, "equal", spread, 0)
    dark = compare(b, "greater", top, 0)
    saturation = b.where(dark, b.div(spread, b.where(dark, top, one)), zero)
    unit = b.div(one, b.mul(b.where(flat, one, spread), 6))
    red = b.mul(unit, b.sub(g, c))
    green = b.add(b.mul(unit, b.sub(c, r)), 2 / 6)
    blue = b.add(b.mul(unit, b.sub(r, g)), 4 / 6)
    hue = b.where(compare(b, "equal", g, top), green, blue)
    hue = b.where(compare(b, "equal", r, top), red, hue)
    hue = b.where(flat, zero, hue)
    hue = b.where(compare(b, "less", hue, 0), b.add(hue, 1), hue)
    return hue, saturation, top


def to_rgb(b: Builder, hue: Value, saturation: Value, value: Value) -> Value:
    """Convert from HSV: each channel is the value minus a part of the chroma that depends on the
    hue.
    """
    chroma = b.mul(saturation, value)
    sixth = b.mul(hue, 6)
    parts = []
    for offset in (5, 3, 1):
        k = b.mod(b.add(sixth, offset), number(b, 6, hue))
        share = b.max(b.min(b.min(k, b.sub(number(b, 4, hue), k)), 1), 0)
        parts.append(b.sub(value, b.mul(chroma, share)))
    return concat(b, parts, len(b.dims(hue)) - 1)


@tf_op("RGBToHSV")
def rgb_to_hsv(b: Builder, node: Node, x: Value) -> Value:
    return concat(b, to_hsv(b, x), len(b.dims(x)) - 1)


@tf_op("HSVToRGB")
def hsv_to_rgb(b: Builder, node: Node, x: Value) -> Value:
    return to_rgb(b, *_channels(b, x))


@tf_op("AdjustHue")
def adjust_hue(b: Builder, node: Node, x: Value, delta: Value) -> Value:
    """Import AdjustHue: add `delta` to the hue, modulo 1."""
    dtype = b.dtype(x)
    hue, saturation, value = to_hsv(b, convert(b, x, wide(dtype)))
    hue = b.add(hue, convert(b, single(b, delta, "delta"), b.dtype(hue)))
    return convert(b, to_rgb(b, b.sub(hue, b.floor(hue)), saturation, value), dtype)


@tf_op("AdjustSaturation")
def adjust_saturation(b: Builder, node: Node, x: Value, scale: Value) -> Value:
    """Import AdjustSaturation: scale the saturation, clipped to [0, 1]."""
    dtype = b.dtype(x)
    hue, saturation, value = to_hsv(b, convert(b, x, wide(dtype)))
    factor = convert(b, single(b, scale, "scale"), b.dtype(hue))
    saturation = b.max(b.min(b.mul(saturation, factor), 1), 0)
    return convert(b, to_rgb(b, hue, saturation, value), dtype)


@tf_op("AdjustContrastv2")
def adjust_contrast(b: Builder, node: Node, x: Value, factor: Value) -> Value:
    """Import AdjustContrast: scale the distance from each channel's mean over its image."""
    rank, dtype = len(b.dims(x)), b.dtype(x)
    if rank < 3:
        raise ModelError(f"expected images of rank 3 or more, got rank {rank}")
    v = convert(b, x, wide(dtype))
    mean = b.reduce_mean(v, axes=[rank - 3, rank - 2])
    by = convert(b, single(b, factor, "contrast_factor"), b.dtype(v))
    return convert(b, b.add(b.mul(b.sub(v, mean), by), mean), dtype)


# ---- patches -----------------------------------------------------------------------------------


def _patches(
    b: Builder,
    x: Value,
    lengths: Sequence[int],
    stride: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Value:
    """Return the elements of each window concatenated in the channels: one slice per tap."""
    n = len(lengths)
    window = [(k - 1) * r + 1 for k, r in zip(lengths, rates, strict=True)]
    x = around_windows(b, x, padding, window, stride)
    limits.parts(math.prod(lengths), "taps of a window")
    parts = []
    for tap in itertools.product(*(range(k) for k in lengths)):
        starts = [t * r for t, r in zip(tap, rates, strict=True)]
        ends = window_ends(window, starts)
        parts.append(slice_known(b, x, starts, ends, list(range(1, n + 1)), list(stride)))
    return concat(b, parts, n + 1)


@tf_op("ExtractImagePatches")
def extract_image_patches(
    b: Builder,
    node: Node,
    x: Value,
    *,
    ksizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Value:
    """Import ExtractImagePatches: the elements of each window, as channels."""
    lengths, stride, rate = (spatial(v, 4, True, "window") for v in (ksizes, strides, rates))
    return _patches(b, x, lengths, stride, rate, padding)


@tf_op("ExtractVolumePatches")
def extract_volume_patches(
    b: Builder,
    node: Node,
    x: Value,
    *,
    ksizes: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> Value:
    """Import ExtractVolumePatches: the elements of each window of a volume, as channels."""
    lengths, stride = (spatial(v, 5, True, "window") for v in (ksizes, strides))
    return _patches(b, x, lengths, stride, [1] * 3, padding)


# ---- projective transforms ---------------------------------------------------------------------


def _folded_place(b: Builder, p: Value, d: Value, mode: str) -> Value:
    """Return a position outside of [0, d - 1] folded inside, by the fill mode."""
    last = b.sub(d, 1)
    if mode == "CONSTANT":
        return p
    if mode == "REFLECT":
        period = b.mul(d, 2)
        inside = b.mod(p, period)
        p = b.where(compare(b, "less", p, 0), _reflected_below(b, p, d), p)
        above = b.where(compare(b, "less", inside, d), inside, b.sub(b.sub(period, inside), 1))
        p = b.where(compare(b, "greater", p, last), above, p)
    elif mode == "WRAP":
        size = b.max(last, 1)
        low = b.add(p, b.mul(d, b.add(_whole(b, b.div(b.neg(p), size)), 1)))
        high = b.sub(p, b.mul(d, _whole(b, b.div(p, size))))
        p = b.where(compare(b, "less", p, 0), low, b.where(compare(b, "greater", p, last), high, p))
    elif mode != "NEAREST":
        raise ModelError(f"attribute 'fill_mode' has unknown value {mode}")
    return b.max(b.min(p, last), 0)


def _whole(b: Builder, x: Value) -> Value:
    """Return a nonnegative number without its fraction."""
    return b.floor(b.max(x, 0))


def _reflected_below(b: Builder, p: Value, d: Value) -> Value:
    period = b.mul(d, 2)
    up = b.add(p, b.mul(period, _whole(b, b.div(b.neg(p), period))))
    far = compare(b, "less", up, b.neg(d))
    return b.where(far, b.add(up, period), b.sub(b.neg(up), 1))


@tf_op("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def image_projective_transform(
    b: Builder,
    node: Node,
    x: Value,
    transforms: Value,
    size: Value,
    fill: Value | None = None,
    *,
    interpolation: str,
    fill_mode: str = "CONSTANT",
) -> Value:
    """Import ImageProjectiveTransform: read each result element where its transform points."""
    if interpolation not in ("NEAREST", "BILINEAR"):
        raise ModelError(f"attribute 'interpolation' has unknown value {interpolation}")
    if len(b.dims(x)) != 4 or len(b.dims(transforms)) != 2 or b.dims(transforms)[1] not in (8, DYN):
        raise ModelError("expected images of rank 4 and transforms of 8 numbers")
    transforms = known_extent(b, transforms, 1, 8, "transforms")
    dtype = b.dtype(x)
    n, height, width, channels = extents(b, x)
    rows, columns = elements(b, size, 2)
    v = convert(b, x, FLOAT)
    flat = reshaped(b, v, [n, times(b, height, width), channels])
    t = [b.slice(transforms, axes=[1], starts=[i], ends=[i + 1]) for i in range(8)]
    t = [unsqueeze(b, squeeze(b, p, [1]), [1, 2]) for p in t]  # images, rows, columns
    xs = unsqueeze(b, arange(b, columns, FLOAT), [0, 1])
    ys = unsqueeze(b, arange(b, rows, FLOAT), [0, 2])

    def line(p: Value, q: Value, r: Value | None) -> Value:
        total = b.add(b.mul(p, xs), b.mul(q, ys))
        return b.add(total, 1) if r is None else b.add(total, r)

    scale = line(t[6], t[7], None)
    dims = [convert(b, scalar(b, d), FLOAT) for d in (height, width)]
    at_y = _folded_place(b, b.div(line(t[3], t[4], t[5]), scale), dims[0], fill_mode)
    at_x = _folded_place(b, b.div(line(t[0], t[1], t[2]), scale), dims[1], fill_mode)
    other = number(b, 0, v) if fill is None else convert(b, single(b, fill, "fill"), FLOAT)

    def read(y: Value, x: Value) -> Value:
        inside = b.logical_and(_within(b, y, dims[0]), _within(b, x, dims[1]))
        place = b.add(b.mul(_index(b, y, dims[0]), scalar(b, width)), _index(b, x, dims[1]))
        batch = extents(b, place)
        count = times(b, batch[1], batch[2])
        place = reshaped(b, place, [batch[0], count, 1])
        if batch[0] == 1 and n != 1:  # a single transform applies to all images
            place = spread(b, place, [n, count, 1])
        found = b.gathernd(flat, place, batch_dims=1)
        found = reshaped(b, found, [n, batch[1], batch[2], channels])
        return b.where(unsqueeze(b, inside, [3]), found, other)

    if interpolation == "NEAREST":
        out = read(_rounded(b, at_y), _rounded(b, at_x))
    else:
        top, left = b.floor(at_y), b.floor(at_x)
        down, across = (unsqueeze(b, v, [3]) for v in (b.sub(at_y, top), b.sub(at_x, left)))
        values = []
        for y in (top, b.add(top, 1)):
            first, second = read(y, left), read(y, b.add(left, 1))
            values.append(
                b.add(b.mul(first, b.sub(number(b, 1, v), across)), b.mul(second, across))
            )
        out = b.add(b.mul(values[0], b.sub(number(b, 1, v), down)), b.mul(values[1], down))
    infinite = compare(b, "equal", unsqueeze(b, scale, [3]), 0)
    out = b.where(infinite, other, out)
    return convert(b, out, dtype)


def _rounded(b: Builder, x: Value) -> Value:
    """Round to the nearest integer, halves away from 0."""
    return b.mul(b.floor(b.add(b.abs(x), 0.5)), b.sign(x))


def _within(b: Builder, p: Value, d: Value) -> Value:
    return b.logical_and(compare(b, "greater", p, -1), compare(b, "less", p, d))


def _index(b: Builder, p: Value, d: Value) -> Value:
    return convert(b, b.max(b.min(p, b.sub(d, 1)), 0), INT64)
