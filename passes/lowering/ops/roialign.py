"""Lowering of roialign: each bin samples its region of the image by bilinear interpolation."""

from __future__ import annotations

from collections.abc import Callable

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir, scf
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.roialign import MOST_SAMPLES, RoiAlign
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed, narrow, widen


@dataclass
class _Corner:
    """Neighbours of a coordinate: indices, the weight of the high one, whether it is inside."""

    low: ir.Value
    high: ir.Value
    weight: TypedScalar
    inside: TypedScalar


@lowers(RoiAlign)
def roialign(
    op: RoiAlign, ins: tuple[ir.Value, ir.Value, ir.Value], e: LoweringContext
) -> ir.Value:
    """Lower to a loop over the samples of each element, four weighed reads each."""
    x, rois, batch = ins
    t, kind = TensorType.of(op.input), TensorType.of(op.batch_indices).dtype
    images, channels, height, width = e.extents(x)
    extents = [e.extent(rois, 0), channels, op.output_height, op.output_width]
    if 0 in extents:
        return e.empty(extents, t.dtype)
    work = computed(t.dtype)
    half = op.coordinate_transformation_mode == "half_pixel"
    b = e.scalars(work, work)

    def body(where: list[ir.Value]) -> ir.Value:
        region, channel, row, column = where

        def edge(i: int) -> TypedScalar:
            value = widen(TypedScalar(index.read(rois, [region, e.index(i)]), t.dtype))
            scaled = b.mul(value, float(op.spatial_scale))
            return b.sub(scaled, 0.5) if half else scaled

        left, top, right, bottom = (edge(i) for i in range(4))
        image = index.to_index(index.read(batch, [region]), kind)
        image = e.index(index.clamp(e, image, 0, index.last_of(e, images)))
        rows = _samples(e, b, op, (top, bottom), row, op.output_height, height)
        columns = _samples(e, b, op, (left, right), column, op.output_width, width)

        def sample(i: ir.Value, j: ir.Value, total: TypedScalar) -> TypedScalar:
            y = _corner(e, b, rows.at(i), height)
            z = _corner(e, b, columns.at(j), width)
            inside = b.and_(y.inside, z.inside)
            for p, wy in ((y.low, b.sub(1.0, y.weight)), (y.high, y.weight)):
                for q, wz in ((z.low, b.sub(1.0, z.weight)), (z.high, z.weight)):
                    element = index.read_safely(
                        e, x, [image, channel, p, q], [images, height, width]
                    )
                    weighted = b.mul(b.mul(wy, wz), widen(TypedScalar(element, t.dtype)))
                    part = b.select(inside, weighted, 0.0)  # also of an infinite element
                    total = b.max(total, part) if op.mode == "max" else b.add(total, part)
            return total

        start = b.const(work.lowest() if op.mode == "max" else 0.0, work)
        total = _loop(e, rows, columns, start, sample)
        count = e.mul(rows.count, columns.count)
        if op.mode == "max":
            # samples outside of the image are 0
            seen = e.mul(rows.seen, columns.seen)
            whole = TypedScalar(index.compare(e, index.EQ, seen, count), dtypes.BOOL)
            total = b.select(whole, total, b.max(total, 0.0))
            none = TypedScalar(index.compare(e, index.EQ, count, 0), dtypes.BOOL)
            return narrow(b.select(none, 0.0, total), t.dtype).value
        number = index.as_i64(e, e.max(count, 1))
        mean = b.div(total, b.cast(TypedScalar(number, dtypes.INT64), work))
        return narrow(mean, t.dtype).value

    return index.from_positions(e, extents, t.dtype, body)


@dataclass
class _Samples:
    """The samples of a bin along one axis; those from `first` to `end` may lie in the image."""

    count: Extent
    first: ir.Value
    end: ir.Value
    seen: ir.Value
    at: Callable[[ir.Value], TypedScalar]


def _samples(
    e: LoweringContext,
    b: ArithScalars,
    op: RoiAlign,
    edges: tuple[TypedScalar, TypedScalar],
    position: ir.Value,
    bins: int,
    extent: Extent,
) -> _Samples:
    """Return the samples of bin `position`: a box is walked where it meets the image."""
    begin, end = edges
    size = b.sub(end, begin)
    if op.coordinate_transformation_mode != "half_pixel":
        size = b.max(size, 1.0)
    step = b.div(size, float(bins))
    count: Extent = op.sampling_ratio
    if not count:
        wanted = b.ceil(step)
        limited = b.min(b.select(b.cmp("gt", wanted, 0.0), wanted, 0.0), float(MOST_SAMPLES))
        count = index.to_index(b.cast(limited, dtypes.INT64).value, dtypes.INT64)

    def number(x: Extent) -> TypedScalar:
        return b.cast(TypedScalar(index.as_i64(e, x), dtypes.INT64), begin.dtype)

    start = b.add(begin, b.mul(number(position), step))
    several = number(e.max(count, 1))

    def at(i: ir.Value) -> TypedScalar:
        return b.add(start, b.div(b.mul(b.add(number(i), 0.5), step), several))

    spacing = b.div(step, several)
    counted = number(count)

    def limited_to_count(v: TypedScalar) -> ir.Value:
        inside = b.select(b.cmp("gt", v, 0.0), b.min(v, counted), 0.0)
        found = index.to_index(b.cast(inside, dtypes.INT64).value, dtypes.INT64)
        return e.index(found)

    # a box whose end is before its start is sampled backwards
    backwards = b.cmp("lt", spacing, 0.0)
    low, high = (b.div(b.sub(border, start), spacing) for border in (-1.0, number(extent)))
    low, high = b.select(backwards, high, low), b.select(backwards, low, high)
    # two more samples on each side, as each sample is tested for being inside
    first = limited_to_count(b.floor(b.sub(low, 2.0)))
    beyond = b.ceil(b.add(high, 2.0))
    last = limited_to_count(b.select(b.cmp("eq", spacing, 0.0), counted, beyond))
    last = e.index(e.max(last, first))
    return _Samples(count, first, last, e.index(e.sub(last, first)), at)


def _corner(e: LoweringContext, b: ArithScalars, at: TypedScalar, extent: Extent) -> _Corner:
    last = index.last_of(e, extent)
    limit = b.cast(TypedScalar(index.as_i64(e, extent), dtypes.INT64), at.dtype)
    inside = b.and_(b.cmp("ge", at, -1.0), b.cmp("le", at, limit))
    safe = b.select(inside, b.max(at, 0.0), 0.0)
    floor = b.floor(safe)
    low = index.to_index(b.cast(floor, dtypes.INT64).value, dtypes.INT64)
    over = TypedScalar(index.compare(e, index.SGE, low, last), dtypes.BOOL)
    low = e.index(index.clamp(e, low, 0, last))
    high = e.index(index.clamp(e, e.add(low, 1), 0, last))
    return _Corner(low, high, b.select(over, 0.0, b.sub(safe, floor)), inside)


def _loop(
    e: LoweringContext,
    rows: _Samples,
    columns: _Samples,
    start: TypedScalar,
    body: Callable[[ir.Value, ir.Value, TypedScalar], TypedScalar],
) -> TypedScalar:
    """Return a value carried through two nested loops."""
    one = e.index(1)
    outer = scf.ForOp(rows.first, rows.end, one, [start.value])
    with ir.InsertionPoint(outer.body):
        carried_in = list(outer.inner_iter_args)
        inner = scf.ForOp(columns.first, columns.end, one, carried_in)
        with ir.InsertionPoint(inner.body):
            carried = TypedScalar(inner.inner_iter_args[0], start.dtype)
            found = body(outer.induction_variable, inner.induction_variable, carried)
            scf.YieldOp([found.value])
        scf.YieldOp([inner.results[0]])
    return TypedScalar(outer.results[0], start.dtype)
