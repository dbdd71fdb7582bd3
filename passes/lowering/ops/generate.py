"""Lowerings of ops that create tensors: fill, allocate, placeholders, multinomial."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.buffers import Outline, Undefined
from mgx_mlir.dialects.migraphx.random import (
    Allocate,
    Fill,
    Multinomial,
    RandomSeed,
    RandomUniform,
)
from mgx_mlir.passes.lowering import host, index
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, Splat, View
from mgx_mlir.passes.lowering.registry import lowers, refuses
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed, constant, widen

refuses("a seed that differs at every run comes from the host, not from a compiled program",
        RandomSeed)  # fmt: skip
refuses("its numbers are those of the Mersenne Twister, which is strictly serial: make them on "
        "the host and pass them as an input", RandomUniform)  # fmt: skip


@lowers(Undefined, Outline)
def placeholder(op: Outline | Undefined, ins: tuple[()], e: LoweringContext) -> Expr:
    """Return zeros, for a value that is never read."""
    t = TensorType.of(op.out)
    return Splat(t, 0, [0 if d == DYN else d for d in t.dims])


@lowers(Allocate)
def allocate(op: Allocate, ins: tuple[ir.Value | None], e: LoweringContext) -> Expr:
    """Zeros, so that a program that does read them is deterministic."""
    t = TensorType.of(op.out)
    extents: list[Extent] = list(t.dims)
    if not t.is_static:
        assert op.dims is not None
        wanted = host.extents_of(e, op.dims)
        extents = [e.max(w, 0) if d == DYN else d for d, w in zip(t.dims, wanted, strict=True)]
    return Splat(t.with_dims(e.static_dims(extents)), 0, extents)


@lowers(Fill)
def fill(op: Fill, ins: tuple[ir.Value, ir.Value], e: LoweringContext) -> Expr:
    """Return a broadcast of the value; only the dims of the buffer matter."""
    value, buffer = ins
    vt, t = TensorType.of(op.value), TensorType.of(op.out)
    extents = e.extents(buffer)
    dims = e.static_dims(extents)
    return View(t.with_dims(dims), Leaf(vt, value), (None,) * vt.rank, extents)


@lowers(Multinomial)
def multinomial(op: Multinomial, ins: tuple[ir.Value, ir.Value], e: LoweringContext) -> ir.Value:
    """Count the running sums that do not exceed the drawn weight: that is the category."""
    cdf, randoms = ins
    t, out = TensorType.of(op.cdf), TensorType.of(op.out)
    batch, samples = e.extents(randoms)
    categories = e.extent(cdf, 1)
    work = computed(t.dtype)
    last = index.last_of(e, categories)
    d = [ir.AffineDimExpr.get(i) for i in range(3)]  # batch, sample, category
    rows = ir.AffineMap.get(3, 0, [d[0], d[2]])
    pairs = ir.AffineMap.get(3, 0, [d[0], d[1]])
    init = e.fill([batch, samples], dtypes.INT64, 0)

    def total(where: list[ir.Value]) -> ir.Value:
        at = [where[0], e.index(e.max(last, 0))]
        return index.read_safely(e, cdf, at, [categories])

    totals = index.from_positions(e, [batch], t.dtype, total)

    def body(weight: ir.Value, whole: ir.Value, draw: ir.Value, count: ir.Value) -> ir.Value:
        b = ArithScalars(work, dtypes.INT64)
        w, s, r = (widen(TypedScalar(x, t.dtype)) for x in (weight, whole, draw))
        below = b.cmp("le", w, b.mul(r, s))
        one, none = constant(1, dtypes.INT64), constant(0, dtypes.INT64)
        return b.add(TypedScalar(count, dtypes.INT64), b.select(below, one, none)).value

    one_per_row = ir.AffineMap.get(3, 0, [d[0]])
    counts = e.generic(
        [cdf, totals, randoms],
        [init],
        [rows, one_per_row, pairs, pairs],
        [PARALLEL, PARALLEL, REDUCTION],
        body,
    )[0]
    return _limited(e, counts, last, out)


def _limited(e: LoweringContext, counts: ir.Value, last: Extent, out: TensorType) -> ir.Value:
    most = TypedScalar(index.as_i64(e, last), dtypes.INT64)
    t = out.with_dims(ir.RankedTensorType(counts.type).shape)

    def body(b: ArithScalars, x: TypedScalar) -> TypedScalar:
        return b.cast(b.min(x, most), out.dtype)

    return e.map_elements([counts], [dtypes.INT64], t, body)
