"""Resizing of images {N, H, W, C}: one axis at a time, by gathers or by a matrix of weights.

Coordinates are computed in f32, as TensorFlow does: where they fall on an edge between two
elements another type would choose the other one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import Extent, elements, extents, reshaped, scalar, times
from mgx_mlir.frontends.helpers import arange, compare, convert, settled, transpose, unsqueeze
from mgx_mlir.frontends.problems import NotSupported
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
    """Elements of the input per element of the result."""
    plain = b.div(_real(b, d), _real(b, out))
    if not align:
        return plain
    steps = b.sub(_real(b, out), 1)
    inner = b.div(b.sub(_real(b, d), 1), b.max(steps, 1))
    return b.where(compare(b, "greater", steps, 0), inner, plain)


def _bounded(b: Builder, place: Value, d: Extent) -> Value:
    """f32 places as i64 indices, those outside at the ends."""
    last = b.sub(_real(b, d), 1)
    return settled(b, convert(b, b.max(b.min(place, last), 0), INT64))


@dataclass(frozen=True)
class PlaceAttributes(Attributes):
    """Where the elements of a resized image lie in the image."""

    align_corners: bool = False
    half_pixel_centers: bool = False


class _Axes:
    """The two axes of an image and what they are resized to."""

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
        """Return each spatial axis with its extent and the one that is wanted."""
        return [(i + 1, d, w) for i, (d, w) in enumerate(zip(self.dims, self.wanted, strict=True))]


def _places(b: Builder, d: Extent, out: Extent, a: _Axes, nearest: bool = False) -> Value:
    """Return where each element of the result lies in the input."""
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
        # halves up: places are not negative
        place = b.floor(b.add(place, 0.5)) if places.align_corners else b.floor(place)
        x = b.gather(x, _bounded(b, place, d), axis=axis)
    return x


def _weighted(b: Builder, x: Value, axis: int, d: Extent, taps: list[tuple[Value, Value]]) -> Value:
    """Return the sum over taps of the elements at places times weights, along one axis."""
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
        taps = [(low, b.sub(_f32(b, 1), share)), (b.add(low, 1), share)]
        x = _weighted(b, x, axis, d, taps)
    return x


@tf_op("ResizeBicubic")
def resize_bicubic(
    b: Builder, node: Node, x: Value, size: Value, *, places: PlaceAttributes
) -> Value:
    """Keys' kernel, its argument in steps of 1/1024; with half pixels taps outside drop out."""
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


def along_axis(b: Builder, x: Value, axis: int, matrix: np.ndarray) -> Value:
    """One axis of x by a matrix {result, input} of weights."""
    parts = extents(b, x)
    rank = len(parts)
    order = [*(i for i in range(rank) if i != axis), axis]
    rows: Extent = 1
    for i in order[:-1]:
        rows = times(b, rows, parts[i])
    flat = reshaped(b, transpose(b, x, order), [rows, parts[axis]])
    out = b.dot(flat, b.literal(np.ascontiguousarray(matrix.T, np.float32)))
    out = reshaped(b, out, [*(parts[i] for i in order[:-1]), matrix.shape[0]])
    return transpose(b, out, [order.index(i) for i in range(rank)])


def _by_matrices(
    b: Builder, x: Value, a: _Axes, matrix: Callable[[int, int, int], np.ndarray]
) -> Value:
    x = convert(b, x, FLOAT)
    for axis, d, out in a.each():
        if not isinstance(d, int) or not isinstance(out, int):
            raise NotSupported("dynamic heights, widths or sizes")
        limits.table((d, out), "weights")
        x = along_axis(b, x, axis, matrix(axis - 1, d, out))
    return x


@tf_op("ResizeArea")
def resize_area(
    b: Builder, node: Node, x: Value, size: Value, *, align_corners: bool = False
) -> Value:
    """Return the mean over the area that an element of the result covers."""
    f = np.float32

    def matrix(_: int, d: int, out: int) -> np.ndarray:
        scale = f(d) / f(out)
        if align_corners and min(d, out) > 1:  # one element is the mean of any part of it
            scale = f(d - 1) / f(out - 1)
        found = np.zeros((out, d), np.float64)
        for i in range(out):
            begin, end = f(i) * scale, f(i + 1) * scale
            for j in range(math.floor(begin), math.ceil(end)):
                share = min(j + 1, float(end)) - max(j, float(begin))
                found[i, min(max(j, 0), d - 1)] += share / float(scale)
        return found

    return _by_matrices(b, x, _Axes(b, x, size, PlaceAttributes(align_corners)), matrix)


def _lanczos(radius: int) -> Callable[[float], float]:
    def kernel(x: float) -> float:
        if x > radius:
            return 0.0
        if x <= 1e-3:
            return 1.0
        return radius * math.sin(math.pi * x) * math.sin(math.pi * x / radius) / (math.pi * x) ** 2

    return kernel


def _keys(x: float) -> float:
    if x >= 2:
        return 0.0
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x >= 1 else (1.5 * x - 2.5) * x * x + 1


def _mitchell(x: float) -> float:
    if x >= 2:
        return 0.0
    if x >= 1:
        return ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return (7 / 6 * x - 2) * x * x + 8 / 9


_KERNELS: dict[str, tuple[float, Callable[[float], float]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, lambda x: math.exp(-(x**2) / (2 * 0.5**2)) if x < 1.5 else 0.0),
    "box": (1, lambda x: 1.0 if x < 0.5 else 0.5 if x == 0.5 else 0.0),
    "triangle": (1, lambda x: max(1 - x, 0.0)),
    "keyscubic": (2, _keys),
    "mitchellcubic": (2, _mitchell),
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
    """Resampling with a kernel, which is stretched where that shrinks (antialias)."""
    if kernel_type not in _KERNELS:
        raise ModelError(f"attribute 'kernel_type' has unknown value {kernel_type}")
    radius, kernel = _KERNELS[kernel_type]
    scales, moves = node.const(scale, "scale"), node.const(translation, "translation")
    f = np.float32

    def matrix(axis: int, d: int, out: int) -> np.ndarray:
        inverse = f(1) / f(scales[axis])
        shift = -inverse * f(moves[axis])
        stretch = max(inverse, f(1)) if antialias else f(1)
        limits.table((out, d), "weights")
        found = np.zeros((out, d))
        for i in range(out):
            centre = f(i + 0.5) * inverse + shift
            if not 0 <= centre <= d:
                continue
            first = math.ceil(centre - radius * stretch - 0.5)
            last = math.floor(centre + radius * stretch - 0.5)
            for j in range(min(max(first, 0), d - 1), min(max(last, 0), d - 1) + 1):
                found[i, j] = kernel(abs(float((f(j + 0.5) - centre) * (f(1) / stretch))))
            total = found[i].sum()
            if abs(total) >= 1000 * np.finfo(np.float32).tiny:
                found[i] /= total
        return found

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
    """Return each box (y1, x1, y2, x2 as shares of its image) resized; outside a fixed value."""
    if method not in ("bilinear", "nearest"):
        raise ModelError(f"attribute 'method' expected bilinear or nearest, got {method}")
    if len(b.dims(x)) != 4:
        raise ModelError(f"expected images of rank 4, got rank {len(b.dims(x))}")
    boxes, x = convert(b, boxes, FLOAT), convert(b, x, FLOAT)
    dims = extents(b, x)[1:3]
    places, outside = [], []
    for i, (d, count) in enumerate(zip(dims, elements(b, size, 2), strict=True)):
        if not isinstance(count, int) or count < 1:
            raise NotSupported("'crop_size' computed at run time")
        low, high = (b.slice(boxes, axes=[1], starts=[k], ends=[k + 1]) for k in (i, i + 2))
        last = b.sub(_real(b, d), 1)
        if count > 1:
            step = b.div(b.mul(b.sub(high, low), last), count - 1)
            place = b.add(b.mul(low, last), b.mul(step, arange(b, count, FLOAT)))
        else:
            place = b.mul(b.mul(b.add(low, high), 0.5), last)
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
