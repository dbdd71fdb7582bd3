"""Lowering of unique: elements (or slices) compared in pairs, without sorting.

The work grows with the square of their number, all of it parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, scf
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.selection import Unique
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu import scans
from mgx_mlir.passes.lowering.ops.reduce import reduce_tensor
from mgx_mlir.passes.lowering.ops.sort import sort_keys
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, constant
from mgx_mlir.passes.lowering.views import reshape_tensor

_INT = dtypes.INT64
_b = ArithScalars(_INT, _INT)


@lowers(Unique)
def unique(op: Unique, ins: tuple[ir.Value], e: LoweringContext) -> list[ir.Value]:
    """Lower to comparisons in pairs: a first occurrence has no equal element before it.

    Its number is how many first occurrences are smaller (sorted), or stand before it.
    """
    x, t = ins[0], TensorType.of(op.input)
    own = e.extents(x)
    axis = None if op.axis is None else axis_of(op.axis, t.rank)
    rows = _rows(e, x, t, own, axis)
    n = rows.extents[0]
    if isinstance(n, int) and n == 0:
        return _nothing(e, own, axis, t)

    def equal_before(i: ir.Value, j: ir.Value) -> TypedScalar:
        sooner = TypedScalar(index.compare(e, index.SLT, j, i), dtypes.BOOL)
        return _b.and_(rows.compare(e, i, j, "eq"), sooner)

    before = _count(e, n, equal_before)
    counts = _count(e, n, lambda i, j: rows.compare(e, i, j, "eq"))

    def is_first(j: ir.Value) -> TypedScalar:
        return _b.cmp("eq", TypedScalar(index.read(before, [j]), _INT), 0)

    if op.sorted:
        number = _count(e, n, lambda i, j: _b.and_(is_first(j), rows.compare(e, j, i, "lt")))
    else:
        origin = _first_equal(e, n, rows)

        def sooner(i: ir.Value, j: ir.Value) -> TypedScalar:
            mine = index.to_index(index.read(origin, [i]), _INT)
            return _b.and_(
                is_first(j), TypedScalar(index.compare(e, index.SLT, j, mine), dtypes.BOOL)
            )

        number = _count(e, n, sooner)
    total = index.to_index(index.read(_total(e, n, is_first), []), _INT)
    first = _first_indices(e, n, total, number, is_first)

    def count(where: list[ir.Value], position: ir.Value) -> ir.Value:
        at = index.normalized(e, position, n, _INT)
        return index.read_safely(e, counts, [at], [n])

    times = index.from_positions(e, [total], _INT, count, [first], [(0,)])
    extents: list[Extent] = [total]
    at_axis = 0
    if axis is not None:
        extents = [*own[:axis], total, *own[axis + 1 :]]
        at_axis = axis
    else:
        kind = TensorType(t.dtype, (n if isinstance(n, int) else DYN,))
        x = reshape_tensor(e, x, kind, [n])

    def value(where: list[ir.Value], position: ir.Value) -> ir.Value:
        at = index.normalized(e, position, n, _INT)
        source = [*where[:at_axis], at, *where[at_axis + 1 :]]
        return index.read_safely(e, x, source, [n])

    values = index.from_positions(e, extents, t.dtype, value, [first], [(at_axis,)])
    return [values, first, number, times]


def _nothing(
    e: LoweringContext, own: list[Extent], axis: int | None, t: TensorType
) -> list[ir.Value]:
    extents = [0] if axis is None else own
    return [e.empty(extents, t.dtype), *(e.empty([0], _INT) for _ in range(3))]


class _Rows:
    """Sort keys as {elements to compare, keys of each}."""

    def __init__(self, keys: ir.Value, kind: dtypes.DType, extents: list[Extent]) -> None:
        self.keys, self.kind, self.extents = keys, kind, extents

    def compare(self, e: LoweringContext, i: ir.Value, j: ir.Value, how: str) -> TypedScalar:
        """Row i == row j, or row i < row j in lexicographic order; as a bool."""
        b = ArithScalars(self.kind, dtypes.BOOL)
        n = self.extents[1]
        if isinstance(n, int) and n == 1:
            pair = (TypedScalar(index.read(self.keys, [k, e.index(0)]), self.kind) for k in (i, j))
            return b.cmp(how, *pair)
        # 0: equal so far, 1: less, 2: greater
        i64 = ir.IntegerType.get_signless(64)
        start = arith.ConstantOp(i64, 0).result
        loop = scf.ForOp(e.index(0), e.index(n), e.index(1), [start])
        with ir.InsertionPoint(loop.body):
            c = loop.induction_variable
            x, y = (TypedScalar(index.read(self.keys, [k, c]), self.kind) for k in (i, j))
            state = TypedScalar(loop.inner_iter_args[0], _INT)
            found = _b.select(b.cmp("gt", x, y), 2, _b.const(0))
            found = _b.select(b.cmp("lt", x, y), 1, found)
            scf.YieldOp([_b.select(_b.cmp("eq", state, 0), found, state).value])
        return _b.cmp("eq", TypedScalar(loop.results[0], _INT), 0 if how == "eq" else 1)


def _rows(
    e: LoweringContext, x: ir.Value, t: TensorType, own: list[Extent], axis: int | None
) -> _Rows:
    keys, kind = sort_keys(e, x, t.dtype, True)
    total: Extent = 1
    for i, d in enumerate(own):
        total = total if i == axis else e.mul(total, d)
    if axis is None:
        extents: list[Extent] = [total, 1]
    else:
        order = [axis, *(i for i in range(t.rank) if i != axis)]

        def moved(where: list[ir.Value]) -> ir.Value:
            source: list[Any] = [None] * t.rank
            for at, i in zip(where, order, strict=True):
                source[i] = at
            return index.read(keys, source)

        if axis:
            keys = index.from_positions(e, [own[i] for i in order], kind, moved)
        extents = [own[axis], total]
    flat = TensorType(kind, tuple(e.static_dims(extents)))
    return _Rows(reshape_tensor(e, keys, flat, extents), kind, extents)


def _reduce(
    e: LoweringContext,
    count: Extent,
    n: Extent,
    start: int,
    step: Callable[[TypedScalar, ir.Value, ir.Value], TypedScalar],
) -> ir.Value:
    """`step(total, i, j)` over j in [0, n), for each i in [0, count)."""

    def one(where: Sequence[ir.Value], j: ir.Value, total: ir.Value) -> ir.Value:
        return step(TypedScalar(total, _INT), where[0], j).value

    if e.options.target != "gpu":
        return index.reduced(e, [count], n, _INT, start, one)

    # IREE does not distribute a reduction of elements at computed indices (hazard 52)
    def alone(where: list[ir.Value]) -> ir.Value:
        def each(j: ir.Value, inside: ir.Value, total: ir.Value) -> ir.Value:
            return arith.SelectOp(inside, one(where, j, total), total).result

        return scans.folded(e, 0, n, constant(start, _INT).value, each)

    return index.from_positions_alone(e, [count], _INT, alone)


def _count(
    e: LoweringContext, n: Extent, holds: Callable[[ir.Value, ir.Value], TypedScalar]
) -> ir.Value:
    """For each i the number of j that hold."""

    def step(total: TypedScalar, i: ir.Value, j: ir.Value) -> TypedScalar:
        return _b.add(total, _b.cast(holds(i, j), _INT))

    return _reduce(e, n, n, 0, step)


def _first_equal(e: LoweringContext, n: Extent, rows: _Rows) -> ir.Value:
    """For each i the first j that equals it."""

    def step(total: TypedScalar, i: ir.Value, j: ir.Value) -> TypedScalar:
        position = TypedScalar(index.as_i64(e, j), _INT)
        return _b.select(rows.compare(e, i, j, "eq"), _b.min(total, position), total)

    return _reduce(e, n, n, int(_INT.highest()), step)


def _total(e: LoweringContext, n: Extent, is_first: Callable[[ir.Value], TypedScalar]) -> ir.Value:
    def flag(where: list[ir.Value]) -> ir.Value:
        return _b.cast(is_first(where[0]), _INT).value

    flags = index.from_positions_alone(e, [n], _INT, flag)
    return reduce_tensor(e, flags, _INT, [0], "add", _INT)


def _first_indices(
    e: LoweringContext,
    n: Extent,
    total: Extent,
    number: ir.Value,
    is_first: Callable[[ir.Value], TypedScalar],
) -> ir.Value:
    """Return the index of the first occurrence of each number."""

    def step(found: TypedScalar, g: ir.Value, j: ir.Value) -> TypedScalar:
        mine = index.to_index(index.read(number, [j]), _INT)
        hit = TypedScalar(index.compare(e, index.EQ, mine, g), dtypes.BOOL)
        position = TypedScalar(index.as_i64(e, j), _INT)
        return _b.select(_b.and_(hit, is_first(j)), position, found)

    return _reduce(e, total, n, 0, step)
