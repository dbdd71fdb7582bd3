"""Sampling by coordinates: AffineGrid and GridSample."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.bounds import within
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    convert,
    extent,
    extent_as,
    known_extent,
    number,
    require,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.runtime_axes import element
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

Extent = float | Value  # a length: a number, or a 0-d tensor at run time

# ---- AffineGrid --------------------------------------------------------------------------------


def _line(b: Builder, n: Value, dtype: DType, align_corners: bool) -> Value:
    """Return n normalised coordinates: the pixels' centres, or from -1 to 1 with both ends."""
    places = arange(b, n, dtype)
    count = convert(b, n, dtype)
    if align_corners:
        steps = b.max(b.sub(count, 1), 1)
        return b.sub(b.div(b.mul(places, 2), steps), 1)
    return b.sub(b.div(b.add(b.mul(places, 2), 1), count), 1)


@onnx_op("AffineGrid", since=20)
def affine_grid(
    b: Builder, node: Node, theta: Value, size: Value, *, align_corners: int = 0
) -> Value:
    """Import AffineGrid: grid[n, .., k] = theta[n, k] . (x, y, (z,) 1) for each pixel."""
    n = (b.dims(size)[0] - 2) if len(b.dims(size)) == 1 else 0
    if len(b.dims(theta)) == 3 and n in (2, 3):
        for axis, wanted in ((1, n), (2, n + 1)):
            theta = known_extent(b, theta, axis, wanted, "theta")
    dims = b.dims(theta)
    if len(dims) != 3 or tuple(dims[1:]) not in ((2, 3), (3, 4)):
        raise ModelError(f"theta expected dims {{N, 2, 3}} or {{N, 3, 4}}, got {show_dims(dims)}")
    n = dims[1]
    size = within(b, size, "size", 0)
    for i in range(2, n + 2):
        size = within(b, size, "size", 1, column=i)
    batch = compare(b, "equal", element(b, size, 0), extent(b, theta, 0))
    size = require(b, size, batch, "a batch in size that is theta's")
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


def _plus(b: Builder, length: Extent, more: float) -> Extent:
    return length + more if isinstance(length, float) else b.add(length, more)


def _reflected(b: Builder, x: Value, low: float, span: Extent) -> Value:
    """Return x reflected into [low, low + span]."""
    if not isinstance(span, float):
        turn = b.max(span, 1)  # a span of one element is 0; larger spans are integers
        away = b.fmod(b.abs(b.sub(x, low)), b.mul(turn, 2))
        folded = b.where(compare(b, "greater", away, span), b.sub(b.mul(turn, 2), away), away)
        return b.add(b.min(folded, span), low)
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
    b: Builder, x: Value, last: Extent, mode: str, padding: str, margin: float
) -> list[tuple[Value, Value | None, Value | None]]:
    """Return (index, weight, whether inside) of each tap of one axis; None if all are inside.

    The axis runs from 0 to `last`, and its border is `margin` wider.
    """
    span = _plus(b, last, 2 * margin)
    if mode == "nearest":
        x = b.nearbyint(x)
    if padding == "border" and mode == "cubic":
        # each tap is clamped separately; an infinite coordinate clamps all taps to the same border
        x = b.min(b.max(x, -3), _plus(b, last, 3))
    elif padding == "border":
        below = compare(b, "less", x, -margin)
        above = compare(b, "greater", b.sub(x, last), margin)
        x = b.where(b.logical_or(below, above), b.min(b.max(x, 0), last), x)
    elif padding == "reflection":
        x = _reflected(b, x, -margin, span)
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
                compare(b, "less", place, _plus(b, last, 0.5)),
            )
        elif padding == "reflection":
            place = _reflected(b, place, -margin, span)
        safe = b.min(b.max(place, 0), last)
        taps.append((convert(b, safe, INT64), weight, inside))
    return taps


@onnx_op("GridSample", since=16)
def grid_sample(
    b: Builder,
    node: Node,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Value:
    """Import GridSample: a weighted sum of taps, each a gathernd of all channels."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("linear", "nearest", "cubic"):
        raise ModelError(f"attribute 'mode' has unknown value {mode}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ModelError(f"attribute 'padding_mode' has unknown value {padding_mode}")
    dims, points = b.dims(x), b.dims(grid)
    n = len(dims) - 2
    if len(points) == n + 2 > 2:
        grid = known_extent(b, grid, n + 1, n, "a grid")
        points = b.dims(grid)
    if n < 1 or len(points) != n + 2 or points[-1] != n:
        raise ModelError(f"grid dims {show_dims(points)} do not fit an input of rank {len(dims)}")
    dtype = b.dtype(x)
    kind = wide(dtype) if dtype.is_float else FLOAT
    grid = convert(b, grid, kind)
    axes: list[list[tuple[Value, Value | None, Value | None]]] = []
    margin = 0.0 if align_corners else 0.5
    for i, d in enumerate(dims[2:]):
        last: Extent = d - 1.0
        if d == DYN:
            last = b.sub(extent_as(b, x, i + 2, kind), 1)
        # the last coordinate belongs to the first spatial axis
        at = squeeze(b, slice_(b, grid, [n + 1], [n - 1 - i], [n - i]), [n + 1])
        if align_corners:
            place = b.mul(b.mul(b.add(at, 1), 0.5), last)
        else:
            place = b.mul(b.sub(b.mul(b.add(at, 1), _plus(b, last, 1)), 1), 0.5)
        axes.append(axis_taps(b, place, last, mode, padding_mode, margin))
    last = transpose(b, convert(b, x, kind), [0, *range(2, n + 2), 1])  # channels last
    total = None
    for taps in itertools.product(*axes):
        term = tap(b, last, taps, n)
        total = term if total is None else b.add(total, term)
    assert total is not None
    return convert(b, transpose(b, total, [0, n + 1, *range(1, n + 1)]), dtype)


def tap(
    b: Builder, x: Value, taps: Sequence[tuple[Value, Value | None, Value | None]], n: int
) -> Value:
    """Gather the elements at one corner of each position, weighted."""
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
