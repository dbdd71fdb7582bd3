"""Sampling by coordinates: AffineGrid and GridSample."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.build import Builder
from mgx_mlir.core.dtypes import FLOAT, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.helpers import (
    Value,
    arange,
    compare,
    convert,
    number,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import element

# ---- AffineGrid --------------------------------------------------------------------------------


def _line(b: Builder, n: Value, dtype: DType, align_corners: bool) -> Value:
    """n normalised coordinates: the pixels' centres, or from -1 to 1 with both ends."""
    places = arange(b, n, dtype)
    count = convert(b, n, dtype)
    if align_corners:
        steps = b.max(b.sub(count, 1), 1)
        return b.sub(b.div(b.mul(places, 2), steps), 1)
    return b.sub(b.div(b.add(b.mul(places, 2), 1), count), 1)


@onnx_op("AffineGrid", since=20)
def affine_grid(
    b: Builder, node: Any, theta: Value, size: Value, *, align_corners: int = 0
) -> Value:
    """grid[n, .., k] = theta[n, k] . (x, y, (z,) 1), for the pixel at that place."""
    dims = b.dims(theta)
    if len(dims) != 3 or tuple(dims[1:]) not in ((2, 3), (3, 4)):
        raise ModelError(f"theta expected dims {{N, 2, 3}} or {{N, 3, 4}}, got {list(dims)}")
    n = dims[1]
    dtype = b.dtype(theta)
    kind = wide(dtype)
    theta = convert(b, theta, kind)

    def column(j: int) -> Value:
        part = slice_(b, theta, [2], [j], [j + 1])  # batch, n, 1
        return unsqueeze(b, squeeze(b, part, [2]), range(1, n + 1))  # batch, 1.., n

    out = column(n)
    for j in range(n):  # x runs along the last axis
        axis = n - j
        line = _line(b, element(b, size, axis + 1), kind, bool(align_corners))
        others = [i for i in range(n + 2) if i != axis]
        out = b.add(out, b.mul(unsqueeze(b, line, others), column(j)))
    return convert(b, out, dtype)


# ---- GridSample --------------------------------------------------------------------------------


def _reflected(b: Builder, x: Value, low: float, high: float) -> Value:
    """x folded back into [low, high]."""
    span = high - low
    if span <= 0:
        return b.mul(x, 0)
    away = b.fmod(b.abs(b.sub(x, low)), 2 * span)
    folded = b.where(compare(b, "greater", away, span), b.sub(number(b, 2 * span, x), away), away)
    return b.add(folded, low)


def _cubic_weights(b: Builder, t: Value) -> list[Value]:
    """Keys' kernel with a = -0.75 at distances 1 + t, t, 1 - t, 2 - t."""
    a = -0.75

    def near(d: Value) -> Value:
        return b.add(b.mul(b.mul(b.sub(b.mul(d, a + 2), a + 3), d), d), 1)

    def far(d: Value) -> Value:
        return b.sub(b.mul(b.add(b.mul(b.sub(b.mul(d, a), 5 * a), d), 8 * a), d), 4 * a)

    one = number(b, 1, t)
    return [far(b.add(t, 1)), near(t), near(b.sub(one, t)), far(b.sub(number(b, 2, t), t))]


def axis_taps(
    b: Builder, x: Value, extent: int, mode: str, padding: str, border: tuple[float, float]
) -> list[tuple[Value, Value | None, Value | None]]:
    """(index, weight, whether inside) of each tap of one axis; None where all count."""
    if mode == "nearest":
        x = b.nearbyint(x)
    if padding == "border":
        below, above = compare(b, "less", x, border[0]), compare(b, "greater", x, border[1])
        outside = b.logical_or(below, above)
        x = b.where(outside, b.clip(x, number(b, 0, x), number(b, extent - 1, x)), x)
    elif padding == "reflection":
        x = _reflected(b, x, *border)
    if mode == "nearest":
        places, weights = [x], [None]
    else:
        base = b.floor(x)
        t = b.sub(x, base)
        if mode == "linear":
            places, weights = [base, b.add(base, 1)], [b.sub(number(b, 1, t), t), t]
        else:
            places = [b.sub(base, 1), base, b.add(base, 1), b.add(base, 2)]
            weights = _cubic_weights(b, t)
    taps = []
    for place, weight in zip(places, weights, strict=True):
        inside = None
        if padding == "zeros":
            inside = b.logical_and(
                b.not_(compare(b, "less", place, 0)),
                compare(b, "less", place, extent),
            )
        elif padding == "reflection":
            place = _reflected(b, place, *border)
        safe = b.clip(place, number(b, 0, place), number(b, extent - 1, place))
        taps.append((convert(b, safe, INT64), weight, inside))
    return taps


@onnx_op("GridSample", since=16)
def grid_sample(
    b: Builder,
    node: Any,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Value:
    """Every tap is one gathernd of all channels at the tap's coordinates, weighted and summed."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("linear", "nearest", "cubic"):
        raise ModelError(f"attribute 'mode' has unknown value {mode}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ModelError(f"attribute 'padding_mode' has unknown value {padding_mode}")
    dims, points = b.dims(x), b.dims(grid)
    n = len(dims) - 2
    if n < 1 or len(points) != n + 2 or points[-1] != n:
        raise ModelError(f"grid dims {list(points)} do not fit an input of rank {len(dims)}")
    if DYN in dims[2:]:
        raise NotSupported("dynamic spatial dims")
    dtype = b.dtype(x)
    kind = wide(dtype) if dtype.is_float else FLOAT
    grid = convert(b, grid, kind)
    axes: list[list[tuple[Value, Value | None, Value | None]]] = []
    for i, extent in enumerate(dims[2:]):
        # the last coordinate belongs to the first spatial axis
        at = squeeze(b, slice_(b, grid, [n + 1], [n - 1 - i], [n - i]), [n + 1])
        if align_corners:
            place = b.mul(b.mul(b.add(at, 1), 0.5), float(extent - 1))
            border = (0.0, extent - 1.0)
        else:
            place = b.mul(b.sub(b.mul(b.add(at, 1), float(extent)), 1), 0.5)
            border = (-0.5, extent - 0.5)
        axes.append(axis_taps(b, place, extent, mode, padding_mode, border))
    last = transpose(b, convert(b, x, kind), [0, *range(2, n + 2), 1])  # channels last
    total = None
    for taps in itertools.product(*axes):
        term = tap(b, last, taps, n)
        total = term if total is None else b.add(total, term)
    return convert(b, transpose(b, total, [0, n + 1, *range(1, n + 1)]), dtype)


def tap(
    b: Builder, x: Value, taps: Sequence[tuple[Value, Value | None, Value | None]], n: int
) -> Value:
    index = b.concat([unsqueeze(b, i, [n + 1]) for i, _, _ in taps], axis=n + 1)
    found = b.gathernd(x, index, batch_dims=1)
    weight, inside = None, None
    for _, w, ok in taps:
        if w is not None:
            weight = w if weight is None else b.mul(weight, w)
        if ok is not None:
            inside = ok if inside is None else b.logical_and(inside, ok)
    if weight is not None:
        found = b.mul(found, unsqueeze(b, weight, [n + 1]))
    if inside is not None:
        zero = b.literal(np.zeros((), b.dtype(found).np))
        found = b.where(unsqueeze(b, inside, [n + 1]), found, zero)
    return found
