"""Resizing of images {N, H, W, C}: one axis at a time, by gathers or by a matrix of weights.

Coordinates are computed in f32, as in TensorFlow: on the edge between two elements, another type
might select the other one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import Extent, elements, extents, product, reshaped, scalar
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    convert,
    greater_equal,
    less_equal,
    settled,
    slice_,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.signatures import Attributes
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def _real(b: Builder, e: Extent) -> Value:
    return b.literal(e, FLOAT) if isinstance(e, int) else convert(b, scalar(b, e), FLOAT)


def _f32(b: Builder, value: float) -> Value:
    return b.literal(np.array(value, np.float32))


def _scale(b: Builder, d: Extent, out: Extent, align: bool) -> Value:
    """Return the input elements per result element."""
    plain = b.div(_real(b, d), _real(b, out))
    if not align:
        return plain
    steps = b.sub(_real(b, out), 1)
    inner = b.div(b.sub(_real(b, d), 1), b.max(steps, 1))
    return b.where(compare(b, "greater", steps, 0), inner, plain)


def _bounded(b: Builder, place: Value, d: Extent) -> Value:
    """Return f32 positions as i64 indices, clamped to the axis."""
    last = b.sub(_real(b, d), 1)
    return settled(b, convert(b, b.max(b.min(place, last), 0), INT64))


@dataclass(frozen=True)
class PlaceAttributes(Attributes):
    """Attributes that define the positions of a resized image's elements."""

    align_corners: bool = False
    half_pixel_centers: bool = False


class _Axes:
    """Axes of an image, and their new sizes."""

    def __init__(self, b: Builder, x: Value, size: Value, places: PlaceAttributes) -> None:
        if len(b.dims(x)) != 4:
            raise ModelError(f"expected images of rank 4, got rank {len(b.dims(x))}")
        if places.align_corners and places.half_pixel_centers:
            raise ModelError("align_corners and half_pixel_centers exclude each other")
        self.wanted = elements(b, size, 2)
        if any(isinstance(w, int) and w < 1 for w in self.wanted):
            raise ModelError(f"size expected positive numbers, got {self.wanted}")
        self.dims = extents(b, x)[1:3]
        self.places = places

    def each(self) -> list[tuple[int, Extent, Extent]]:
        """Yield each spatial axis with its extent and its new size."""
        return [(i + 1, d, w) for i, (d, w) in enumerate(zip(self.dims, self.wanted, strict=True))]


def _places(b: Builder, d: Extent, out: Extent, a: _Axes, nearest: bool = False) -> Value:
    """Return the input coordinate of each result element."""
    at = arange(b, out if isinstance(out, int) else scalar(b, out), FLOAT)
    scale = _scale(b, d, out, a.places.align_corners)
    if not a.places.half_pixel_centers:
        return b.mul(at, scale)
    centre = b.mul(b.add(at, 0.5), scale)
    return centre if nearest else b.sub(centre, 0.5)


@tf_op("ResizeNearestNeighbor")
def resize_nearest(
    b: Builder, node: Node, x: Value, size: Value, *, places: PlaceAttributes
) -> Value:
    """Import ResizeNearestNeighbor."""
    a = _Axes(b, x, size, places)
    for axis, d, out in a.each():
        place = _places(b, d, out, a, nearest=True)
        # halves round up: positions are nonnegative
        place = b.floor(b.add(place, 0.5)) if places.align_corners else b.floor(place)
        x = b.gather(x, _bounded(b, place, d), axis=axis)
    return x


def _weighted(b: Builder, x: Value, axis: int, d: Extent, taps: list[tuple[Value, Value]]) -> Value:
    """Return the sum over taps of gathered elements times weights, along one axis."""
    out = None
    for place, weight in taps:
        part = b.gather(x, _bounded(b, place, d), axis=axis)
        term = b.mul(part, unsqueeze(b, settled(b, weight), range(1, len(b.dims(x)) - axis)))
        out = term if out is None else b.add(out, term)
    assert out is not None
    return out


@tf_op("ResizeBilinear")
def resize_bilinear(
    b: Builder, node: Node, x: Value, size: Value, *, places: PlaceAttributes
) -> Value:
    """Import ResizeBilinear, whose result is f32."""
    a = _Axes(b, x, size, places)
    x = convert(b, x, FLOAT)
    for axis, d, out in a.each():
        place = _places(b, d, out, a)
        low = b.floor(place)
        share = b.sub(place, low)
        # at an integer position the upper index is that position: the next element has weight 0
        taps = [(low, b.sub(_f32(b, 1), share)), (b.ceil(place), share)]
        x = _weighted(b, x, axis, d, taps)
    return x


@tf_op("ResizeBicubic")
def resize_bicubic(
    b: Builder, node: Node, x: Value, size: Value, *, places: PlaceAttributes
) -> Value:
    """Import ResizeBicubic: Keys' kernel in steps of 1/1024; with half pixels outer taps are
    dropped.
    """
    a = _Axes(b, x, size, places)
    x = convert(b, x, FLOAT)
    for axis, d, out in a.each():
        place = _places(b, d, out, a)
        low = b.floor(place)
        t = b.div(b.nearbyint(b.mul(b.sub(place, low), 1024)), 1024)
        k = -0.5 if places.half_pixel_centers else -0.75
        back = b.sub(_f32(b, 1), t)
        weights = [_far(b, b.add(t, 1), k), _near(b, t, k), _near(b, back, k),
                   _far(b, b.add(back, 1), k)]  # fmt: skip
        taps = [b.sub(low, 1), low, b.add(low, 1), b.add(low, 2)]
        if places.half_pixel_centers:
            last = b.sub(_real(b, d), 1)
            weights = [
                b.where(
                    b.logical_or(compare(b, "less", p, 0), compare(b, "greater", p, last)),
                    _f32(b, 0),
                    w,
                )
                for p, w in zip(taps, weights, strict=True)
            ]
            total = b.add(b.add(weights[0], weights[1]), b.add(weights[2], weights[3]))
            weights = [b.div(w, total) for w in weights]
        x = _weighted(b, x, axis, d, list(zip(taps, weights, strict=True)))
    return x


def _near(b: Builder, t: Value, a: float) -> Value:
    """Keys' kernel up to a distance of 1."""
    return b.add(b.mul(b.mul(b.sub(b.mul(t, a + 2), a + 3), t), t), 1)


def _far(b: Builder, t: Value, a: float) -> Value:
    """Keys' kernel from 1 to 2."""
    return b.sub(b.mul(b.add(b.mul(b.sub(b.mul(t, a), 5 * a), t), 8 * a), t), 4 * a)


# ---- by matrices -------------------------------------------------------------------------------


def _by_matrices(
    b: Builder, x: Value, a: _Axes, matrix: Callable[[int, Extent, Extent], Value]
) -> Value:
    """Multiply each axis of the image by a matrix {result, input} of weights."""
    x = convert(b, x, FLOAT)
    for axis, d, out in a.each():
        if isinstance(d, int) and isinstance(out, int):
            limits.table((d, out), "weights")
        weights = settled(b, matrix(axis - 1, d, out))
        own = extents(b, x)
        rank = len(own)
        order = [*(i for i in range(rank) if i != axis), axis]
        rest = [own[i] for i in order[:-1]]
        flat = reshaped(b, transpose(b, x, order), [product(b, rest), d])
        y = reshaped(b, b.dot(flat, transpose(b, weights, [1, 0])), [*rest, out])
        x = transpose(b, y, [order.index(i) for i in range(rank)])
    return x


def _rows(b: Builder, count: Extent) -> Value:
    """Return the numbers of the results, a column."""
    return unsqueeze(b, arange(b, count, FLOAT), [1])


@tf_op("ResizeArea")
def resize_area(
    b: Builder, node: Node, x: Value, size: Value, *, align_corners: bool = False
) -> Value:
    """Import ResizeArea: the mean over the area that a result element covers."""

    def matrix(_: int, d: Extent, out: Extent) -> Value:
        scale = _scale(b, d, out, align_corners)
        scale = b.where(compare(b, "greater", scale, 0), scale, _f32(b, 1))  # one element
        begin, end = (b.mul(at, scale) for at in (_rows(b, out), b.add(_rows(b, out), 1)))
        column = arange(b, d, FLOAT)
        after = b.add(column, 1)  # columns beyond the last element repeat it
        high = b.where(compare(b, "equal", after, _real(b, d)), end, b.min(end, after))
        return b.div(b.max(b.sub(high, b.max(begin, column)), 0), scale)

    return _by_matrices(b, x, _Axes(b, x, size, PlaceAttributes(align_corners)), matrix)


# weight as a function of the distance, which is not negative
_Kernel = Callable[[Builder, Value], Value]


def _polynomial(b: Builder, t: Value, factors: Sequence[float]) -> Value:
    """Return the polynomial with these coefficients, the highest power first."""
    out = _f32(b, factors[0])
    for factor in factors[1:]:
        out = b.add(b.mul(out, t), _f32(b, factor))
    return out


def _lanczos(radius: int) -> _Kernel:
    def kernel(b: Builder, t: Value) -> Value:
        angle = b.mul(t, _f32(b, math.pi))
        waves = b.mul(b.sin(angle), b.sin(b.div(angle, radius)))
        found = b.div(b.mul(waves, radius), b.mul(angle, angle))
        return b.where(compare(b, "greater", t, 1e-3), found, _f32(b, 1))

    return kernel


def _pieces(near: Sequence[float], far: Sequence[float]) -> _Kernel:
    """Return the kernel with one polynomial below 1 and another from 1 on."""

    def kernel(b: Builder, t: Value) -> Value:
        return b.where(compare(b, "less", t, 1), *(_polynomial(b, t, f) for f in (near, far)))

    return kernel


def _gaussian(b: Builder, t: Value) -> Value:
    return b.exp(b.mul(b.mul(t, t), -1 / (2 * 0.5**2)))


def _box(b: Builder, t: Value) -> Value:
    half = b.where(compare(b, "equal", t, 0.5), _f32(b, 0.5), _f32(b, 0))
    return b.where(compare(b, "less", t, 0.5), _f32(b, 1), half)


# distance from which on weights are 0, and weights below it
_KERNELS: dict[str, tuple[float, _Kernel]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, _gaussian),
    "box": (1, _box),
    "triangle": (1, lambda b, t: b.sub(_f32(b, 1), t)),
    "keyscubic": (2, _pieces((1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2))),
    "mitchellcubic": (2, _pieces((7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9))),
}


@tf_op("ScaleAndTranslate")
def scale_and_translate(
    b: Builder,
    node: Node,
    x: Value,
    size: Value,
    scale: Value,
    translation: Value,
    *,
    kernel_type: str = "lanczos3",
    antialias: bool = True,
) -> Value:
    """Import ScaleAndTranslate: resampling with a kernel, widened when shrinking (antialias)."""
    if kernel_type not in _KERNELS:
        raise ModelError(f"attribute 'kernel_type' has unknown value {kernel_type}")
    radius, kernel = _KERNELS[kernel_type]
    for name, v in (("scale", scale), ("translation", translation)):
        if b.dims(v) != (2,):
            raise ModelError(f"{name} expected 2 numbers, got dims {show_dims(b.dims(v))}")

    def matrix(axis: int, d: Extent, out: Extent) -> Value:
        factor, move = (slice_(b, v, [0], [axis], [axis + 1]) for v in (scale, translation))
        inverse = b.div(_f32(b, 1), factor)
        stretch = b.max(inverse, 1) if antialias else _f32(b, 1)
        centre = b.sub(b.mul(b.add(_rows(b, out), 0.5), inverse), b.mul(inverse, move))
        last, reach = b.sub(_real(b, d), 1), b.mul(stretch, radius)
        ends = (
            b.ceil(b.sub(b.sub(centre, reach), 0.5)), b.floor(b.sub(b.add(centre, reach), 0.5))
        )  # fmt: skip
        first, final = (b.max(b.min(v, last), 0) for v in ends)
        column = arange(b, d, FLOAT)
        distance = b.abs(b.div(b.sub(b.add(column, 0.5), centre), stretch))
        read = [
            greater_equal(b, column, first), less_equal(b, column, final),
            greater_equal(b, centre, 0), less_equal(b, centre, _real(b, d)),
            compare(b, "less", distance, radius),
        ]  # fmt: skip
        weights = b.where(functools.reduce(b.logical_and, read), kernel(b, distance), _f32(b, 0))
        total = b.reduce_sum(weights, axes=[1])
        tiny = compare(b, "less", b.abs(total), 1000 * float(np.finfo(np.float32).tiny))
        return b.div(weights, b.where(tiny, _f32(b, 1), total))

    return _by_matrices(b, x, _Axes(b, x, size, PlaceAttributes()), matrix)


# ---- crops -------------------------------------------------------------------------------------


@tf_op("CropAndResize")
def crop_and_resize(
    b: Builder,
    node: Node,
    x: Value,
    boxes: Value,
    which: Value,
    size: Value,
    *,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Value:
    """Import CropAndResize: each box (y1, x1, y2, x2 as fractions of its image), a constant
    outside.
    """
    if method not in ("bilinear", "nearest"):
        raise ModelError(f"attribute 'method' expected bilinear or nearest, got {method}")
    if len(b.dims(x)) != 4:
        raise ModelError(f"expected images of rank 4, got rank {len(b.dims(x))}")
    boxes, x = convert(b, boxes, FLOAT), convert(b, x, FLOAT)
    dims = extents(b, x)[1:3]
    places, outside = [], []
    for i, (d, count) in enumerate(zip(dims, elements(b, size, 2), strict=True)):
        if isinstance(count, int) and count < 1:
            raise ModelError(f"crop_size expected positive numbers, got {count}")
        low, high = (b.slice(boxes, axes=[1], starts=[k], ends=[k + 1]) for k in (i, i + 2))
        last = b.sub(_real(b, d), 1)
        at, steps = arange(b, count, FLOAT), b.sub(_real(b, count), 1)
        step = b.div(b.mul(b.sub(high, low), last), b.max(steps, 1))
        middle = b.mul(b.mul(b.add(low, high), 0.5), last)  # middle of one element
        place = b.add(b.mul(low, last), b.mul(step, at))
        place = b.where(compare(b, "greater", steps, 0), place, middle)
        out = b.logical_or(compare(b, "less", place, 0), compare(b, "greater", place, last))
        shape = [2] if i == 0 else [1]
        places.append(unsqueeze(b, place, shape))  # boxes, rows, columns
        outside.append(unsqueeze(b, out, [*shape, 3]))
    image = unsqueeze(b, convert(b, which, INT64), [1, 2])

    def read(row: Value, column: Value) -> Value:
        parts = b.broadcast(image, _bounded(b, row, dims[0]), _bounded(b, column, dims[1]))
        return b.gathernd(x, b.concat([unsqueeze(b, p, [3]) for p in parts], axis=3))

    if method == "nearest":
        found = read(*(b.floor(b.add(p, 0.5)) for p in places))
    else:
        (top, down), (left, across) = ((b.floor(p), b.sub(p, b.floor(p))) for p in places)
        down, across = unsqueeze(b, down, [3]), unsqueeze(b, across, [3])
        rows = []
        for row in (top, b.add(top, 1)):
            first, second = read(row, left), read(row, b.add(left, 1))
            rows.append(b.add(first, b.mul(b.sub(second, first), across)))
        found = b.add(rows[0], b.mul(b.sub(rows[1], rows[0]), down))
    beyond = b.logical_or(*outside)
    return b.where(beyond, _f32(b, extrapolation_value), found)
