"""Resize and Upsample: per axis, gathers at source coordinates weighted by an interpolation kernel.

Coordinates and weights are vectors computed in f64. With given scales they are computed in f32, the
type of scales, where 20 x 0.7 is 14. They are folded to literals if sizes or scales are known, and
computed at run time otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import DOUBLE, FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType, show_dims
from mgx_mlir.frontends.helpers import (
    arange,
    axes_in,
    compare,
    convert,
    extent_as,
    greater_equal,
    known_extent,
    require,
    settled,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import element
from mgx_mlir.frontends.shaping import elements_of, repeated
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


# largest multiple of its length to which an axis is extended as one op of symbolic size
_MOST_TIMES = 8


@dataclass
class _Axis:
    """A resized axis; extents and scale are 0-d f64 tensors."""

    axis: int
    input: Value  # extent of the input
    output: Value  # extent of the output
    scale: Value
    roi: tuple[Value, Value] | None  # start and end of the region of interest
    given: bool  # scale is an operand, or that of all axes; else the quotient of the extents


@dataclass(frozen=True)
class _Mode:
    coordinates: str
    mode: str
    nearest: str
    cubic_a: float
    exclude_outside: bool
    antialias: bool
    extrapolation: float


def _f64(b: Builder, value: float) -> Value:
    return b.literal(np.array(value, np.float64))


def source_coordinates(b: Builder, a: _Axis, mode: str) -> Value:
    """Return the input coordinate of each output element, as a f64 vector.

    With given scales the steps are onnxruntime's, in its order, because their rounding in f32
    decides indices. With sizes the quotient of the extents is not rounded before its use, so that a
    coordinate on an element is exactly that element.
    """
    kind = FLOAT if a.given or mode == "tf_crop_and_resize" else DOUBLE

    def number(v: Value | float) -> Value:
        return convert(b, _f64(b, v) if isinstance(v, int | float) else v, kind)

    x = arange(b, convert(b, a.output, INT64), kind)
    scale, length, extent = number(a.scale), number(a.input), number(a.output)

    def over(position: Value) -> Value:
        return b.div(position, scale) if a.given else b.div(b.mul(position, length), extent)

    if mode == "asymmetric":
        return convert(b, over(x), DOUBLE)
    single = compare(b, "equal", extent, 1)
    if mode in ("align_corners", "tf_crop_and_resize"):
        last = b.sub(length, 1)
        steps = b.where(single, number(1.0), b.sub(extent, 1))
        if mode == "align_corners":
            return convert(b, b.div(b.mul(x, last), steps), DOUBLE)
        if a.roi is None:
            raise ModelError("tf_crop_and_resize expected input 'roi'")
        start, end = map(number, a.roi)
        inside = b.div(b.mul(b.mul(x, b.sub(end, start)), last), steps)
        centre = b.mul(b.mul(b.add(start, end), 0.5), last)
        return convert(b, b.where(single, centre, b.add(b.mul(start, last), inside)), DOUBLE)
    centre = over(b.add(x, 0.5))
    if mode == "tf_half_pixel_for_nn":
        # an axis of scale 1 is not resized
        return convert(b, b.where(compare(b, "equal", scale, 1), x, centre), DOUBLE)
    if mode == "half_pixel_symmetric":
        missing = b.sub(number(1.0), b.div(extent, b.mul(scale, length)))
        centre = b.add(b.mul(b.div(length, 2), missing), centre)
    half = b.sub(centre, 0.5)
    if mode == "pytorch_half_pixel":
        half = b.where(single, number(0.0), half)
    return convert(b, half, DOUBLE)


def _cubic(b: Builder, distance: Value, a: float) -> Value:
    """Keys' kernel of |distance|."""
    d = b.abs(distance)
    near = b.add(b.mul(b.mul(b.sub(b.mul(d, a + 2), a + 3), d), d), 1)
    far = b.sub(b.mul(b.add(b.mul(b.sub(b.mul(d, a), 5 * a), d), 8 * a), d), 4 * a)
    far = b.where(compare(b, "less", d, 2), far, _f64(b, 0))
    return b.where(compare(b, "greater", d, 1), far, near)


def _linear(b: Builder, distance: Value) -> Value:
    return b.max(b.sub(_f64(b, 1), b.abs(distance)), 0)


def _bounded(b: Builder, index: Value, a: _Axis) -> Value:
    """Return f64 indices into the axis as i64, clamped to the axis."""
    inside = b.min(b.max(index, 0), b.sub(a.input, 1))
    return settled(b, convert(b, inside, INT64))


def _nearest(b: Builder, x: Value, a: _Axis, coordinates: Value, how: str) -> Value:
    if how == "floor":
        index = b.floor(coordinates)
    elif how == "ceil":
        index = b.ceil(coordinates)
    elif how == "up_when_shrinking":
        shrinks = compare(b, "less", a.scale, 1)
        index = b.where(shrinks, b.ceil(coordinates), b.floor(coordinates))
    elif how == "round_prefer_floor":
        index = b.ceil(b.sub(coordinates, 0.5))
    else:
        index = b.floor(b.add(coordinates, 0.5))
    return b.gather(x, _bounded(b, index, a), axis=a.axis)


def _taps(b: Builder, x: Value, a: _Axis, coordinates: Value, m: _Mode) -> Value:
    """Return the weighted sum of 2 (linear) or 4 (cubic) gathers."""
    base = b.floor(coordinates)
    offsets = (0, 1) if m.mode == "linear" else (-1, 0, 1, 2)
    places, weights = [], []
    for offset in offsets:
        place = b.add(base, offset) if offset else base
        distance = b.sub(coordinates, place)
        weight = _linear(b, distance) if m.mode == "linear" else _cubic(b, distance, m.cubic_a)
        if m.exclude_outside:
            outside = b.logical_or(
                compare(b, "less", place, 0),
                compare(b, "greater", place, b.sub(a.input, 1)),
            )
            weight = b.where(outside, _f64(b, 0), weight)
        places.append(place)
        weights.append(weight)
    if m.exclude_outside:
        weights = _normalized(b, weights)
    dtype, rank, out = b.dtype(x), len(b.dims(x)), None
    for place, weight in zip(places, weights, strict=True):
        part = b.gather(x, _bounded(b, place, a), axis=a.axis)
        factor = unsqueeze(b, settled(b, convert(b, weight, dtype)), range(1, rank - a.axis))
        term = b.mul(part, factor)
        out = term if out is None else b.add(out, term)
    assert out is not None
    return out


def _normalized(b: Builder, weights: Sequence[Value]) -> list[Value]:
    total = weights[0]
    for w in weights[1:]:
        total = b.add(total, w)
    total = b.where(compare(b, "equal", total, 0), _f64(b, 1), total)
    return [b.div(w, total) for w in weights]


def _antialiased(b: Builder, x: Value, a: _Axis, coordinates: Value, m: _Mode) -> Value:
    """Return a matrix of weights over all input positions, the kernel stretched when shrinking.

    Positions extend beyond both ends by the kernel's radius; there the edge element repeats.
    """
    scale = b.min(a.scale, 1)
    reach = b.add(b.ceil(b.div(_f64(b, 2), scale)), 1)
    count = convert(b, b.add(a.input, b.mul(reach, 2)), INT64)
    places = b.sub(arange(b, count, DOUBLE), reach)
    distance = b.mul(b.sub(unsqueeze(b, places, [1]), unsqueeze(b, coordinates, [0])), scale)
    weights = _linear(b, distance) if m.mode == "linear" else _cubic(b, distance, m.cubic_a)
    if m.exclude_outside:
        outside = b.logical_or(
            compare(b, "less", places, 0), compare(b, "greater", places, b.sub(a.input, 1))
        )
        weights = b.where(unsqueeze(b, outside, [1]), _f64(b, 0), weights)
    weights = b.div(weights, b.reduce_sum(weights, axes=[0]))
    spread = b.gather(x, _bounded(b, places, a), axis=a.axis)
    return along_matrix(b, spread, settled(b, convert(b, weights, b.dtype(x))), a.axis)


def along_matrix(b: Builder, x: Value, matrix: Value, axis: int) -> Value:
    """One axis of x multiplied by a matrix: out[.., j, ..] = sum over i of x[.., i, ..] m[i, j]."""
    rank = len(b.dims(x))
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = transpose(b, x, order)
    dims = b.dims(moved)
    if rank == 2:
        flat = moved
    elif DYN in dims:
        by_rows = b.concat([b.ints([-1]), b.shape(moved, rank - 1)], axis=0)
        flat = b.reshape(moved, by_rows)
    else:
        flat = b.flatten(moved, axis=rank - 1)
    out = b.dot(flat, matrix)
    if rank != 2:
        lead, last = dims[:-1], b.dims(out)[1]
        if DYN not in (*lead, last):
            out = b.reshape(out, b.ints([*lead, last]), allowzero=True)
        else:
            shape = b.concat([b.shape(moved, 0, rank - 1), b.shape(out, 1)], axis=0)
            out = b.reshape(out, shape, allowzero=True)
    return transpose(b, out, [order.index(i) for i in range(rank)])


def _resized(b: Builder, x: Value, axes: Sequence[_Axis], m: _Mode) -> Value:
    dtype = b.dtype(x)
    out = x if m.mode == "nearest" else convert(b, x, wide(dtype))
    if not dtype.is_float and m.mode != "nearest":
        out = convert(b, x, DOUBLE)
    outside = None
    for a in axes:
        coordinates = settled(b, source_coordinates(b, a, m.coordinates))
        if m.coordinates == "tf_crop_and_resize":
            beyond = b.logical_or(
                compare(b, "less", coordinates, 0),
                compare(b, "greater", coordinates, b.sub(a.input, 1)),
            )
            beyond = unsqueeze(b, settled(b, beyond), range(1, len(b.dims(x)) - a.axis))
            outside = beyond if outside is None else b.logical_or(outside, beyond)
        if m.mode == "nearest":
            out = _nearest(b, out, a, coordinates, m.nearest)
        elif m.antialias:
            out = _antialiased(b, out, a, coordinates, m)
        else:
            out = _taps(b, out, a, coordinates, m)
    if outside is not None:
        out = b.where(outside, m.extrapolation, out)
    if not dtype.is_float and m.mode != "nearest":
        out = b.nearbyint(out)
    return convert(b, out, dtype)


def _vector(b: Builder, v: Value | None, what: str, count: int) -> list[Value] | None:
    """Return the elements of a 1-D operand as 0-d f64 tensors; None for an absent or empty one."""
    if v is None or b.dims(v) == (0,):
        return None
    if len(b.dims(v)) == 1:
        v = known_extent(b, v, 0, count, what)
    if b.dims(v) != (count,):
        raise ModelError(f"{what} expected {count} numbers, got dims {show_dims(b.dims(v))}")
    wide_v = convert(b, v, DOUBLE)
    return [settled(b, squeeze(b, slice_(b, wide_v, [0], [i], [i + 1]), [0])) for i in range(count)]


def resize(
    b: Builder,
    x: Value,
    roi: Value | None,
    scales: Value | None,
    sizes: Value | None,
    axes: Sequence[int] | None,
    m: _Mode,
    policy: str,
) -> Value:
    """Resize `x` by scales or to sizes, as the options say."""
    rank = len(b.dims(x))
    if m.coordinates not in _COORDINATES:
        raise ModelError(f"coordinate_transformation_mode has unknown value {m.coordinates}")
    if m.mode not in ("nearest", "linear", "cubic"):
        raise ModelError(f"mode expected nearest, linear or cubic, got {m.mode}")
    chosen = axes_in(list(range(rank)) if axes is None else axes, rank)
    n = len(chosen)
    factors = _vector(b, scales, "scales", n)
    wanted = _vector(b, sizes, "sizes", n)
    if (factors is None) == (wanted is None):
        raise ModelError("expected one of the inputs 'scales' and 'sizes'")
    regions = None
    if m.coordinates == "tf_crop_and_resize" and roi is not None:
        regions = _vector(b, roi, "roi", 2 * n)
    if policy == "stretch" or sizes is None:
        whole = _whole_factors(b, x, chosen, scales, sizes)
        if all(whole) and _repeats(m):
            factors_of = dict(zip(chosen, whole, strict=True))
            return repeated(b, x, {a: int(n or 1) for a, n in factors_of.items()})
    found = None
    if wanted is None and scales is not None:
        found = _as_one(b, x, chosen, b.const(scales), m)
    elif sizes is not None and policy == "stretch":
        found = _to_sizes(b, x, chosen, b.const(sizes), m)
        if found is None and b.const(sizes) is None:
            found = _to_run_time_sizes(b, x, chosen, sizes, m)
    if found is not None:
        return found
    extents = [extent_as(b, x, axis, DOUBLE) for axis in chosen]
    if wanted is not None:
        ratios = [b.div(w, e) for w, e in zip(wanted, extents, strict=True)]
        if policy != "stretch":
            if policy not in ("not_larger", "not_smaller"):
                raise ModelError(f"keep_aspect_ratio_policy has unknown value {policy}")
            common = ratios[0]
            for r in ratios[1:]:
                common = b.min(common, r) if policy == "not_larger" else b.max(common, r)
            ratios = [common] * n
            wanted = [b.floor(b.add(b.mul(common, e), 0.5)) for e in extents]
        factors = ratios
    given = wanted is None
    stated = given or policy != "stretch"
    assert factors is not None
    if wanted is None:
        wanted = [_scaled(b, f, e) for f, e in zip(factors, extents, strict=True)]
    parts = []
    kept = _kept(b, x, chosen, sizes if policy == "stretch" else None)
    for i, axis in enumerate(chosen):
        known, size = b.const(factors[i]), b.const(wanted[i])
        unchanged = axis in kept or (known is not None and float(known) == 1)
        if unchanged and m.coordinates != "tf_crop_and_resize":
            continue
        if size is not None and float(size) < 0:
            raise ModelError(f"axis {axis} is resized to {int(size)} elements")
        if given:
            fits, what = compare(b, "greater", factors[i], 0), "scale above 0"
        else:  # without elements any size is valid
            fits, what = greater_equal(b, wanted[i], b.min(extents[i], 1)), "size of 1 or more"
        wanted[i] = require(b, wanted[i], fits, f"a {what} for axis {axis}")
        if size is None:
            fits = greater_equal(b, wanted[i], 0)
            wanted[i] = require(b, wanted[i], fits, f"a size of 0 or more for axis {axis}")
        region = (regions[i], regions[i + n]) if regions is not None else None
        size, factor = settled(b, wanted[i]), settled(b, factors[i])
        parts.append(_Axis(axis, extents[i], size, factor, region, stated))
    return _resized(b, x, parts, m)


def _as_one(
    b: Builder, x: Value, axes: Sequence[int], factors: np.ndarray | None, m: _Mode
) -> Value | None:
    """Return axes resized by known factors as one op, if that weighs two elements; else None."""
    dims = b.probe.dims(x)
    if factors is None or not _weighs_two(b, x, m):
        return None
    given = dict(zip(axes, map(float, factors.reshape(-1)), strict=True))
    if any(f <= 0 for f in given.values()):
        return None
    changed = [a for a, f in given.items() if f != 1]
    if not changed:
        return None
    scales = [given.get(a, 1.0) for a in range(len(dims))]
    return b.op(
        "resize", x, scales=scales, mode="linear", coordinate_transformation_mode=m.coordinates
    )


def _to_sizes(
    b: Builder, x: Value, axes: Sequence[int], sizes: np.ndarray | None, m: _Mode
) -> Value | None:
    """Return axes of known extents resized to known ones as one op; None as in `_as_one`."""
    dims = b.probe.dims(x)
    if sizes is None or not _weighs_two(b, x, m) or not all(isinstance(d, int) for d in dims):
        return None
    given = dict(zip(axes, map(int, sizes.reshape(-1)), strict=True))
    if any(n <= 0 for n in given.values()) or all(n == dims[a] for a, n in given.items()):
        return None
    lengths = [given.get(a, d) for a, d in enumerate(dims)]
    return b.op(
        "resize", x, sizes=lengths, mode="linear", coordinate_transformation_mode=m.coordinates
    )


def _to_run_time_sizes(
    b: Builder, x: Value, axes: Sequence[int], sizes: Value, m: _Mode
) -> Value | None:
    """Return axes resized to symbolic sizes as one op; None as in `_as_one`."""
    wanted, dims = elements_of(b, sizes), list(b.dims(x))
    if wanted is None or len(wanted) != len(axes) or not _weighs_two(b, x, m):
        return None
    parts = [b.ints([-1]) for _ in dims]  # -1 keeps an extent
    own = b.probe.dims(x)
    for i, (w, a) in enumerate(zip(wanted, axes, strict=True)):
        if b.probe.are_equal(w, own[a]):
            continue
        size = convert(b, element(b, sizes, i), INT64)
        fits = greater_equal(b, size, 0)  # an extent of another tensor may be 0
        size = require(b, size, fits, f"a size of 0 or more for axis {a}")
        parts[a] = unsqueeze(b, size, [0])
        dims[a] = w if isinstance(w, int) else DYN
    target = b.concat(parts, axis=0)
    return b.op(
        "resize", x, target, mode="linear", coordinate_transformation_mode=m.coordinates,
        results=[TensorType(b.dtype(x), tuple(dims))],
    )  # fmt: skip


def _weighs_two(b: Builder, x: Value, m: _Mode) -> bool:
    """Return whether two elements are weighed along each axis, at positions that follow from
    extents.
    """
    coordinates = (
        "half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric",
    )  # fmt: skip
    plain = m.mode == "linear" and not m.exclude_outside and not m.antialias
    return plain and m.coordinates in coordinates and b.dtype(x).is_float


def _repeats(m: _Mode) -> bool:
    """Return whether an axis that becomes n times as long repeats each element n times."""
    if m.mode != "nearest":
        return False
    rounds = m.nearest in ("round_prefer_floor", "round_prefer_ceil")
    if m.coordinates in ("half_pixel", "pytorch_half_pixel"):
        return rounds
    return m.coordinates == "asymmetric" and m.nearest in ("floor", "up_when_shrinking")


def _whole_factors(
    b: Builder, x: Value, axes: Sequence[int], scales: Value | None, sizes: Value | None
) -> list[int | None]:
    """Return the factor of each axis, of which at least one is dynamic.

    None if a factor is unknown, or no integer.
    """
    dims = b.probe.dims(x)
    if all(isinstance(dims[a], int) for a in axes):
        return [None]  # coordinates become literals
    known = None if scales is None else b.const(scales)
    if known is not None:
        return [int(f) if f == int(f) and f >= 1 else None for f in known.reshape(-1).tolist()]
    wanted = None if sizes is None else elements_of(b, sizes)
    if wanted is None or len(wanted) != len(axes):
        return [None]
    found: list[int | None] = []
    for w, a in zip(wanted, axes, strict=True):
        equal = (n for n in range(1, _MOST_TIMES + 1) if b.probe.are_equal(w, dims[a] * n))
        found.append(next(equal, None))
    return found


def _kept(b: Builder, x: Value, axes: Sequence[int], sizes: Value | None) -> set[int]:
    """Return the axes whose size never changes, such as the batch.

    Weights of 1 and 0 along them would give NaN next to an image that has an infinity.
    """
    wanted = None if sizes is None else elements_of(b, sizes)
    if wanted is None or len(wanted) != len(axes):
        return set()
    dims = b.probe.dims(x)
    return {a for w, a in zip(wanted, axes, strict=True) if b.probe.are_equal(w, dims[a])}


def _scaled(b: Builder, scale: Value, extent: Value) -> Value:
    """floor(scale * extent), the product rounded to f32."""
    product = b.mul(convert(b, scale, FLOAT), convert(b, extent, FLOAT))
    return convert(b, b.floor(product), DOUBLE)


@onnx_op("Resize", since=11)
def resize_op(
    b: Builder,
    node: Node,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Value:
    """Import Resize, by scales or sizes."""
    if nearest_mode not in _NEAREST:
        raise ModelError(f"nearest_mode has unknown value {nearest_mode}")
    if exclude_outside and mode == "nearest":
        raise ModelError("exclude_outside expected mode linear or cubic")
    m = _Mode(
        coordinate_transformation_mode,
        mode,
        nearest_mode,
        cubic_coeff_a,
        bool(exclude_outside),
        bool(antialias) and mode != "nearest",
        extrapolation_value,
    )
    if sizes is not None and scales is not None and b.dims(scales) == (0,):
        scales = None
    return resize(b, x, roi, scales, sizes, axes, m, keep_aspect_ratio_policy)


def _upsampled(b: Builder, x: Value, scales: Value, mode: str) -> Value:
    """Import Upsample, and Resize before opset 11: coordinates are x / scale, nearest rounds down,
    or up for a shrinking axis.
    """
    m = _Mode("asymmetric", mode, "up_when_shrinking", -0.75, False, False, 0.0)
    return resize(b, x, None, scales, None, None, m, "stretch")


@onnx_op("Resize", since=10)
def resize_10(b: Builder, node: Node, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    """Import Resize of opset 10: like Upsample."""
    return _upsampled(b, x, scales, mode)


@onnx_op("Upsample", since=9)
def upsample(
    b: Builder,
    node: Node,
    x: Value,
    scales: Value | None = None,
    third: Value | None = None,
    *,
    mode: str = "nearest",
) -> Value:
    """Import Upsample, whose scales are the second operand, or as in Resize the third."""
    if (scales is None) == (third is None):
        raise ModelError("expected scales as input 1, or as input 2 without an input 1")
    scales = third if scales is None else scales
    assert scales is not None
    return _upsampled(b, x, scales, mode)


@onnx_op("Upsample", since=7)
def upsample_7(
    b: Builder, node: Node, x: Value, *, mode: str = "nearest", scales: Sequence[float]
) -> Value:
    """Import Upsample of opsets 7 and 8, whose scales are an attribute."""
    return _upsampled(b, x, b.literal(np.array(scales, np.float32)), mode)


@onnx_op("Upsample", since=1)
def upsample_1(
    b: Builder,
    node: Node,
    x: Value,
    *,
    height_scale: float,
    mode: str = "nearest",
    width_scale: float,
) -> Value:
    """Import Upsample of opsets 1 to 6: images, with a scale for height and width."""
    if mode == "bilinear":
        mode = "linear"
    if len(b.dims(x)) != 4:
        raise NotSupported("inputs other than {N, C, H, W}")
    scales = np.array([1, 1, height_scale, width_scale], np.float32)
    return _upsampled(b, x, b.literal(scales), mode)
