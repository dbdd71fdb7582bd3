"""Lowering of resize: small tables per axis (indices, weights), then one loop over each axis.

The tables are made by loops of their own, so that static and dynamic extents share one form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.scalar import ScalarBuilder
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.dialects.migraphx.scalar_math import to_integer
from mgx_mlir.passes.lowering import index as indices
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent, Leaf, View
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.resize_axes import Axis, axes_of, coordinate, read_scale
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    ScalarLike,
    TypedScalar,
    computed,
    narrow,
    widen,
)
from mgx_mlir.passes.lowering.views import reshape_tensor

_FLOAT, _DOUBLE, _INT = dtypes.FLOAT, dtypes.DOUBLE, dtypes.INT64


@lowers(Resize)
def resize(op: Resize, ins: tuple[ir.Value, ir.Value | None], e: LoweringContext) -> ir.Value:
    """Lower nearest to reads of one element, linear and cubic to weighted sums along one axis
    after the other.
    """
    x, t = ins[0], TensorType.of(op.input)
    axes = axes_of(op, ins, e)
    extents = [a.extent for a in axes]
    if 0 in extents:
        return e.empty(extents, t.dtype)
    if any(isinstance(a.length, int) and a.length == 0 for a in axes):
        return e.fill(extents, t.dtype, 0)
    crop = op.coordinate_transformation_mode == "tf_crop_and_resize"
    for i, a in enumerate(axes):
        a.at = None if a.unchanged() and not crop else _coordinates(e, op, a, i)
    if op.mode == "nearest":
        found = _repeated(e, op, x, axes)
        if found is None:
            found = _nearest(e, op, x, axes)
    else:
        found = _weighed(e, op, x, axes)
    return _cropped(e, op, found, axes) if crop else found


# ---- coordinates ---------------------------------------------------------------------------------


def _coordinates(e: LoweringContext, op: Resize, axis: Axis, index: int) -> ir.Value:
    """Return the coordinate in the input (f32) of each index of the result along one axis."""

    def number(x: Extent) -> TypedScalar:
        b = ArithScalars(_FLOAT, _FLOAT)
        return b.cast(TypedScalar(indices.as_i64(e, x), _INT), _FLOAT)

    def body(where: list[ir.Value]) -> ir.Value:
        scale = None
        if axis.given is not None:
            scale = read_scale(e, axis.given, _FLOAT, axis.index)
        return coordinate(op, axis, index, where[0], number, scale).value

    return indices.from_positions(e, [axis.extent], _FLOAT, body)


def _clamped(e: LoweringContext, b: ArithScalars, x: TypedScalar, length: Extent) -> ir.Value:
    """Return a whole number as an index inside of the axis; NaN is 0."""
    limited = b.max(b.min(b.select(b.is_nan(x), 0.0, x), float(2**31)), float(-(2**31)))
    at = indices.to_index(b.cast(limited, _INT).value, _INT)
    return e.index(indices.clamp(e, at, 0, indices.last_of(e, length)))


# ---- nearest -------------------------------------------------------------------------------------


def _nearest(e: LoweringContext, op: Resize, x: ir.Value, axes: list[Axis]) -> ir.Value:
    tables = [None if a.at is None else _rounded(e, op.nearest_mode, a.at, a) for a in axes]
    inputs = [table for table in tables if table is not None]
    maps = [(i,) for i, table in enumerate(tables) if table is not None]

    def body(where: list[ir.Value], *read: ir.Value) -> ir.Value:
        values = iter(read)
        source = [
            at if table is None else indices.to_index(next(values), _INT)
            for at, table in zip(where, tables, strict=True)
        ]
        return indices.read_safely(e, x, source, [a.length for a in axes])

    dtype = TensorType.of(op.input).dtype
    return indices.from_positions(e, [a.extent for a in axes], dtype, body, inputs, maps)


def _rounded(e: LoweringContext, mode: str, coordinates: ir.Value, axis: Axis) -> ir.Value:
    def body(where: list[ir.Value], value: ir.Value) -> ir.Value:
        b = ArithScalars(_FLOAT, _FLOAT)
        at = TypedScalar(value, _FLOAT)
        if mode == "floor":
            found = b.floor(at)
        elif mode == "ceil":
            found = b.ceil(at)
        elif mode == "round_prefer_floor":
            found = b.ceil(b.sub(at, 0.5))
        else:
            found = b.floor(b.add(at, 0.5))
        return indices.as_i64(e, _clamped(e, b, found, axis.length))

    return indices.from_positions(e, [axis.extent], _INT, body, [coordinates], [(0,)])


def _repeated(e: LoweringContext, op: Resize, x: ir.Value, axes: list[Axis]) -> ir.Value | None:
    """Return an integer upscale that only repeats elements, as a broadcast; else None."""
    mode, rounding = op.coordinate_transformation_mode, op.nearest_mode
    centred = mode in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
    if not (
        (mode == "asymmetric" and rounding == "floor")
        or (centred and rounding.startswith("round_prefer"))
    ):
        return None
    factors: list[int] = []
    for a in axes:
        if a.unchanged():
            factors.append(1)
            continue
        if a.scale is None or not isinstance(a.length, int) or not isinstance(a.extent, int):
            return None
        factor = int(a.scale)
        if factor != a.scale or a.extent != a.length * factor or a.extent > 2**20:
            return None
        factors.append(factor)
    lengths = [a.length for a in axes]
    parts: list[Extent] = []
    entries: list[int] = []
    for n, f in zip(lengths, factors, strict=True):
        entries.append(len(parts))
        parts += [n] if f == 1 else [n, f]
    t = TensorType.of(op.input)
    kind = TensorType(t.dtype, tuple(e.static_dims(parts)))
    wide = e.tensor(View(kind, Leaf(t, x), tuple(entries), list(parts)))
    extents = [a.extent for a in axes]
    return reshape_tensor(e, wide, t.with_dims(e.static_dims(extents)), extents)


# ---- linear and cubic ----------------------------------------------------------------------------


def _weighed(e: LoweringContext, op: Resize, x: ir.Value, axes: list[Axis]) -> ir.Value:
    t = TensorType.of(op.input)
    wide_integer = t.dtype.is_integer and t.dtype.bits >= 32
    work = _DOUBLE if wide_integer or t.dtype is _DOUBLE else _FLOAT
    found, kind = x, t.dtype
    for i, axis in enumerate(axes):
        if axis.at is not None:
            table = _taps(e, op, axis.at, axis, work)
            found, kind = _along(e, found, kind, i, axis, table, work), work
    if kind is t.dtype and kind is work:
        return found
    if t.dtype.is_integer:
        return _to_integers(e, found, kind, t.dtype)
    return e.cast_tensor(found, kind, t.dtype) if kind is not t.dtype else found


def _to_integers(e: LoweringContext, x: ir.Value, kind: DType, dtype: DType) -> ir.Value:
    if kind is dtype:
        return x
    t = TensorType(dtype, tuple(ir.RankedTensorType(x.type).shape))

    def body(b: ArithScalars, value: TypedScalar) -> TypedScalar:
        return cast(TypedScalar, to_integer(cast(ScalarBuilder, b), value, dtype))

    return e.map_elements([x], [kind], t, body)


@dataclass
class _Taps:
    """Indices (i64) and weights of the taps of each index of the result: a row for each tap."""

    positions: list[ir.Value]
    weights: list[ir.Value]


def _taps(e: LoweringContext, op: Resize, at: ir.Value, axis: Axis, work: DType) -> _Taps:
    support = 2 if op.mode == "cubic" else 1
    shrink = 1.0
    if op.antialias:
        if axis.scale is None:
            raise ShapeError(
                "antialias needs scales that are known at compile time",
                notes=["the number of elements under the filter follows from them"],
            )
        shrink = min(float(axis.scale), 1.0)
    reach = support / shrink
    count = 2 * math.ceil(reach)
    b = ArithScalars(_DOUBLE, _DOUBLE)
    length = axis.length

    def tap(value: ir.Value, number: ScalarLike) -> tuple[TypedScalar, TypedScalar]:
        """Return the index of a tap, and its weight before scaling."""
        exact = b.cast(TypedScalar(value, _FLOAT), _DOUBLE)
        first = b.add(b.floor(b.sub(exact, reach)), 1.0)
        position = b.add(first, number)
        distance = b.abs(b.mul(b.sub(position, exact), shrink))
        weight = _cubic(b, distance, op.cubic_coeff_a) if support == 2 else _linear(b, distance)
        if op.exclude_outside:
            last = b.cast(TypedScalar(indices.as_i64(e, indices.last_of(e, length)), _INT), _DOUBLE)
            inside = b.and_(b.cmp("ge", position, 0.0), b.cmp("le", position, last))
            weight = b.select(inside, weight, 0.0)
        return position, weight

    def place_of(number: ScalarLike, value: ir.Value) -> ir.Value:
        position, _ = tap(value, number)
        return indices.as_i64(e, _clamped(e, b, position, length))

    def weight_of(number: ScalarLike, value: ir.Value) -> ir.Value:
        _, weight = tap(value, number)
        if op.exclude_outside or shrink < 1:
            total = b.const(0.0, _DOUBLE)
            for i in range(count):
                total = b.add(total, tap(value, float(i))[1])
            nothing = b.cmp("eq", total, 0.0)
            weight = b.select(nothing, 0.0, b.div(weight, b.select(nothing, 1.0, total)))
        return b.cast(weight, work).value

    def made(dtype: DType, of: Callable[[ScalarLike, ir.Value], ir.Value]) -> list[ir.Value]:
        """Return a table of the taps' values for every index of the result."""

        def row(number: float) -> ir.Value:
            def body(_: list[ir.Value], value: ir.Value) -> ir.Value:
                return of(number, value)

            return indices.from_positions(e, [axis.extent], dtype, body, [at], [(0,)])

        if not isinstance(axis.extent, int):  # IREE refuses a row of a dynamic table in a kernel
            return [row(float(i)) for i in range(count)]

        def body(where: list[ir.Value], value: ir.Value) -> ir.Value:
            number = b.cast(TypedScalar(indices.as_i64(e, where[0]), _INT), _DOUBLE)
            return of(number, value)

        table = indices.from_positions(e, [count, axis.extent], dtype, body, [at], [(1,)])
        return [_row(e, table, i, axis.extent, dtype) for i in range(count)]

    return _Taps(made(_INT, place_of), made(work, weight_of))


def _linear(b: ArithScalars, t: TypedScalar) -> TypedScalar:
    return b.max(b.sub(1.0, t), 0.0)


def _cubic(b: ArithScalars, t: TypedScalar, a: float) -> TypedScalar:
    """Keys' kernel of |distance|."""
    near = b.add(b.mul(b.mul(b.sub(b.mul(t, a + 2), a + 3), t), t), 1.0)
    far = b.sub(b.mul(b.add(b.mul(b.sub(b.mul(t, a), 5 * a), t), 8 * a), t), 4 * a)
    return b.select(b.cmp("le", t, 1.0), near, b.select(b.cmp("lt", t, 2.0), far, 0.0))


def _along(
    e: LoweringContext, x: ir.Value, dtype: DType, axis: int, info: Axis, taps: _Taps, work: DType
) -> ir.Value:
    """Return the weighed sum along one axis, in the type `work`."""
    own = e.extents(x)
    extents = list(own)
    extents[axis] = info.extent

    # loop inputs are read once, not element by element
    rows = [v for pair in zip(taps.positions, taps.weights, strict=True) for v in pair]

    def body(where: list[ir.Value], *read: ir.Value) -> ir.Value:
        b = ArithScalars(work, work)
        total: TypedScalar | None = None
        for position, weight in zip(read[::2], read[1::2], strict=True):
            source = [*where[:axis], indices.to_index(position, _INT), *where[axis + 1 :]]
            value = indices.read_safely(e, x, source, own[axis : axis + 1])
            element = b.cast(widen(TypedScalar(value, dtype)), work)
            part = b.mul(element, TypedScalar(weight, work))
            total = part if total is None else b.add(total, part)
        assert total is not None
        return total.value

    return indices.from_positions(e, extents, work, body, rows, [(axis,)] * len(rows))


def _row(
    e: LoweringContext, table: ir.Value, number: int, extent: Extent, dtype: DType
) -> ir.Value:
    part = extract_slice(e, table, [number, 0], [1, extent])
    kind = TensorType(dtype, tuple(e.static_dims([extent])))
    return reshape_tensor(e, part, kind, [extent])


# ---- cropping ------------------------------------------------------------------------------------


def _cropped(e: LoweringContext, op: Resize, x: ir.Value, axes: list[Axis]) -> ir.Value:
    """Return the extrapolation value where a coordinate lies outside of the input."""
    inputs = [x, *(a.at for a in axes if a.at is not None)]  # every axis has coordinates here
    t, rank = TensorType.of(op.input), len(axes)
    maps = [tuple(range(rank)), *((i,) for i in range(rank))]
    work = computed(t.dtype)
    number = op.extrapolation_value if t.dtype.is_float else int(op.extrapolation_value)

    def body(where: list[ir.Value], value: ir.Value, *at: ir.Value) -> ir.Value:
        b = ArithScalars(_FLOAT, work)
        outside = b.const(0, dtypes.BOOL)
        for position, axis in zip(at, axes, strict=True):
            p = TypedScalar(position, _FLOAT)
            last = indices.as_i64(e, indices.last_of(e, axis.length))
            limit = b.cast(TypedScalar(last, _INT), _FLOAT)
            outside = b.or_(outside, b.or_(b.cmp("lt", p, 0.0), b.cmp("gt", p, limit)))
        element = widen(TypedScalar(value, t.dtype))
        return narrow(b.select(outside, b.const(number, work), element), t.dtype).value

    return indices.from_positions(e, [a.extent for a in axes], t.dtype, body, inputs, maps)
