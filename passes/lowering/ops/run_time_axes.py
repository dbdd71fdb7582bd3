"""Reductions whose axes are an operand: each dim is reduced, or not, at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, linalg, scf
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.lowering import host, index
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.scalar import ArithScalars, Number, TypedScalar, constant, widen

Combine = Callable[[ArithScalars, TypedScalar, TypedScalar], TypedScalar]


def chosen_dims(e: LoweringContext, axes: ir.Value, rank: int) -> list[ir.Value]:
    """For each dim whether the operand names it, as i1; no axes name all."""
    t = TensorType.of(axes)
    named: list[ir.Value] = []
    if t.dims[0] == DYN:
        return _chosen_of_many(e, e.tensor(axes), t.dtype, rank)
    extents = host.extents_of(e, axes)
    if not extents:
        return [index.true()] * rank
    for d in range(rank):
        found: ir.Value | None = None
        for axis in extents:
            hit = _names(e, axis, d, rank)
            found = hit if found is None else arith.OrIOp(found, hit).result
        assert found is not None
        named.append(found)
    return named


def _names(e: LoweringContext, axis: Extent, dim: Extent, rank: int) -> ir.Value:
    behind = e.sub(dim, rank)
    return arith.OrIOp(
        index.compare(e, index.EQ, axis, dim), index.compare(e, index.EQ, axis, behind)
    ).result


def _chosen_of_many(e: LoweringContext, axes: ir.Value, dtype: DType, rank: int) -> list[ir.Value]:
    """Return whether each axis is named, by an operand of dynamic length."""
    count = e.extent(axes, 0)
    d = [ir.AffineDimExpr.get(i) for i in range(2)]
    maps = [ir.AffineMap.get(2, 0, [d[1]]), ir.AffineMap.get(2, 0, [d[0]])]
    init = e.fill([rank], dtypes.INT64, 0)
    b = ArithScalars(dtypes.INT64, dtypes.INT64)

    def body(axis: ir.Value, found: ir.Value) -> ir.Value:
        dim = linalg.IndexOp(0).result
        hit = TypedScalar(_names(e, index.to_index(axis, dtype), dim, rank), dtypes.BOOL)
        return b.or_(TypedScalar(found, dtypes.INT64), b.cast(hit, dtypes.INT64)).value

    found = e.barrier(e.generic([axes], [init], maps, [PARALLEL, REDUCTION], body)[0], [rank])
    none = index.compare(e, index.EQ, count, 0)
    out: list[ir.Value] = []
    for i in range(rank):
        value = index.to_index(index.read(found, [e.index(i)]), dtypes.INT64)
        named = index.compare(e, index.NE, value, 0)
        out.append(arith.OrIOp(named, none).result)
    return out


def reduce_chosen(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    chosen: Sequence[ir.Value],
    combine: Combine,
    acc: DType,
    start: Number,
) -> tuple[ir.Value, Extent]:
    """`x` reduced over the chosen dims, which keep extent 1, in `acc`; and how many elements
    went into each result."""
    count: Extent = 1
    kind = dtype
    for dim, mine in enumerate(chosen):
        own = e.extents(x)
        if isinstance(own[dim], int) and own[dim] == 1 and kind is acc:
            continue
        taps = index.select(e, mine, own[dim], 1)
        extents: list[Extent] = list(own)
        if not (isinstance(own[dim], int) and own[dim] == 1):
            extents[dim] = index.select(e, mine, 1, own[dim])
        count = e.mul(count, taps)
        x = _reduce_dim(e, x, kind, dim, mine, taps, extents, combine, acc, start)
        kind = acc
    if kind is not acc:
        x = e.cast_tensor(x, kind, acc)
    return x, count


def _reduce_dim(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    dim: int,
    mine: ir.Value,
    taps: ir.Value,
    extents: Sequence[Extent],
    combine: Combine,
    acc: DType,
    start: Number,
) -> ir.Value:
    def step(where: Sequence[ir.Value], tap: ir.Value, total: ir.Value) -> ir.Value:
        source = list(where)
        source[dim] = e.index(index.select(e, mine, tap, where[dim]))
        b = e.scalars(acc, acc)
        value = widen(TypedScalar(index.read(x, source), dtype))
        if value.dtype is not acc:
            value = b.cast(value, acc)
        return combine(b, TypedScalar(total, acc), value).value

    def one_result(where: list[ir.Value]) -> ir.Value:
        return _in_a_loop(e, taps, constant(start, acc), where, step)

    return e.barrier(index.from_positions(e, extents, acc, one_result), extents)


def _in_a_loop(
    e: LoweringContext,
    taps: ir.Value,
    start: TypedScalar,
    where: Sequence[ir.Value],
    step: Callable[[Sequence[ir.Value], ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """Return one result by an scf loop.

    IREE for GPUs does not distribute a reduction with both dynamic extents and computed indices.
    IREE for CPUs vectorises it with masked reads, which takes 3.9 s to compile for 2x3x4 by two
    axes. The loop takes 0.4 s, and its code is as fast.
    """
    loop = scf.ForOp(e.index(0), e.index(taps), e.index(1), [start.value])
    with ir.InsertionPoint(loop.body):
        scf.YieldOp([step(where, loop.induction_variable, loop.inner_iter_args[0])])
    return loop.results[0]
