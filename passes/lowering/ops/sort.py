"""Lowerings of argmax, argmin and topk."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, linalg
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.normalize import TopK
from mgx_mlir.dialects.migraphx.reduce import ArgMax, ArgMin
from mgx_mlir.passes.lowering import host, index
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.cpu.irregular import merge_sort
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu import ranks
from mgx_mlir.passes.lowering.iree import linalg_ext
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    TypedScalar,
    computed,
    ordered,
    signless,
    widen,
)
from mgx_mlir.passes.lowering.views import reshape_tensor

_LONG_LINE = 256  # elements of a line that is worth a second launch
_LINE = 10_000  # elements that a dynamic line is taken to have


@lowers(ArgMax, ArgMin)
def arg_extreme(op: ArgMax | ArgMin, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Lower to a reduction of (value, index) pairs, valid in any order."""
    x, t = ins[0], TensorType.of(op.input)
    axis = axis_of(op.axis, t.rank)
    own = e.extents(x)
    kept = [d for i, d in enumerate(own) if i != axis]
    largest = isinstance(op, ArgMax)
    _, found = arg_extreme_of(e, x, t.dtype, axis, kept, largest, op.select_last_index)
    extents: list[Extent] = list(own)
    extents[axis] = 1
    result = TensorType(dtypes.INT64, tuple(e.static_dims(extents)))
    return reshape_tensor(e, found, result, extents)


def arg_extreme_of(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    axis: int,
    kept: list[Extent],
    largest: bool,
    last: bool,
) -> list[ir.Value]:
    """Return the extremes along `axis` (dropped), and their indices as i64."""
    work = computed(dtype)
    worst = work.lowest() if largest else work.highest()
    # an index that every other one replaces
    nowhere = -1 if last else dtypes.INT64.highest()
    better, sooner = ("gt" if largest else "lt"), ("gt" if last else "lt")
    b = ArithScalars(work, work)

    def inits(extents: Sequence[Extent]) -> list[ir.Value]:
        return [e.fill(extents, work, worst), e.fill(extents, dtypes.INT64, nowhere)]

    def chosen(
        value: TypedScalar, at: ir.Value, best: ir.Value, position: ir.Value, *fits: TypedScalar
    ) -> list[ir.Value]:
        old, here = TypedScalar(best, work), TypedScalar(at, dtypes.INT64)
        before = TypedScalar(position, dtypes.INT64)
        wins, ties = b.cmp(better, value, old), b.cmp("eq", value, old)
        if work.is_float:
            # NaN is the extreme of both
            new_nan, old_nan = b.is_nan(value), b.is_nan(old)
            wins = b.or_(wins, b.and_(new_nan, b.not_(old_nan)))
            ties = b.or_(ties, b.and_(new_nan, old_nan))
        take = b.or_(wins, b.and_(ties, b.cmp(sooner, here, before)))
        for one in fits:
            take = b.and_(take, one)
        return [b.select(take, value, old).value, b.select(take, here, before).value]

    rank = len(kept) + 1
    d = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]
    extent = e.extent(x, axis)
    lanes = _lanes_of_a_line(e, extent)
    if lanes == 1:

        def body(element: ir.Value, best: ir.Value, position: ir.Value) -> list[ir.Value]:
            value = widen(TypedScalar(element, dtype))
            return chosen(value, index.as_i64(e, linalg.IndexOp(axis).result), best, position)

        iterators = [REDUCTION if i == axis else PARALLEL for i in range(rank)]
        rest = ir.AffineMap.get(rank, 0, [d[i] for i in range(rank) if i != axis])
        maps = [ir.AffineMap.get_identity(rank), rest, rest]
        return e.generic([x], inits(kept), maps, iterators, body)

    def strided(_: ir.Value, best: ir.Value, position: ir.Value) -> list[ir.Value]:
        where = [linalg.IndexOp(i).result for i in range(rank + 1)]
        at = e.index(e.add(e.mul(where[rank], lanes), where[rank - 1]))
        inside = index.compare(e, index.SLT, at, extent)
        safe = index.select(e, inside, at, index.last_of(e, extent))
        element = index.read(x, [*where[:axis], safe, *where[axis : rank - 1]])
        fits = TypedScalar(inside, dtypes.BOOL)
        return chosen(widen(TypedScalar(element, dtype)), index.as_i64(e, at), best, position, fits)

    def together(
        value: ir.Value, at: ir.Value, best: ir.Value, position: ir.Value
    ) -> list[ir.Value]:
        return chosen(TypedScalar(value, work), at, best, position)

    each = [*kept, lanes]
    maps = [ir.AffineMap.get(rank + 1, 0, own) for own in ([d[rank]], d[:rank], d[:rank])]

    def partial() -> list[ir.Value]:
        # never read: it gives the loop its extent
        span = e.empty([index.ceil_div(e, extent, lanes)], dtypes.INT32)
        iterators = [PARALLEL] * rank + [REDUCTION]
        return e.generic([span], inits(each), maps, iterators, strided)

    def whole() -> list[ir.Value]:
        to = ir.AffineMap.get(rank, 0, d[: rank - 1])
        both = [ir.AffineMap.get_identity(rank)] * 2 + [to, to]
        return e.generic(parts, inits(kept), both, [PARALLEL] * (rank - 1) + [REDUCTION], together)

    def kinds(extents: Sequence[Extent]) -> list[ir.Type]:
        dims = e.static_dims(extents)
        return [ir.RankedTensorType.get(dims, signless(kind)) for kind in (work, dtypes.INT64)]

    parts = index.alone(e, kinds(each), [each] * 2, partial)
    return index.alone(e, kinds(kept), [kept] * 2, whole)


def _lanes_of_a_line(e: LoweringContext, extent: Extent) -> int:
    """Return how many lanes of a GPU look for the extreme of a line, ahead of one that takes the
    best of theirs: about as many as each compares.

    An odd multiple of 32: IREE gives each lane the work of four where that divides them.
    """
    if e.options.target != "gpu" or (isinstance(extent, int) and extent < _LONG_LINE):
        return 1
    known = extent if isinstance(extent, int) else _LINE
    return 32 * min(isqrt(known) // 32 | 1, 5)


# ---- topk ----------------------------------------------------------------------------------------


@lowers(TopK)
def topk(
    op: TopK, ins: tuple[ir.Value, ir.Value | None, ir.Value | None], e: LoweringContext
) -> list[ir.Value]:
    """Return the indices of the best integer keys, then the elements there."""
    x, names, _ = ins
    t = TensorType.of(op.input)
    axis, own = axis_of(op.axis, t.rank), e.extents(x)
    extents: list[Extent] = list(own)
    extents[axis] = op.k
    if op.count is not None:
        extents[axis] = e.min(e.max(host.extents_of(e, op.count)[0], 0), own[axis])
    if 0 in extents:
        return [e.empty(extents, t.dtype), e.empty(extents, dtypes.INT64)]
    keys, kind = sort_keys(e, x, t.dtype, op.largest)
    if e.options.target == "gpu":
        best = ranks.best_indices
    else:
        best = merge_sort.best_indices if e.options.vector_kernels else linalg_ext.topk
    positions = best(e, keys, kind, axis, extents)

    def source(where: list[ir.Value], position: ir.Value) -> list[ir.Value]:
        at = index.normalized(e, position, own[axis], dtypes.INT32)
        return [*where[:axis], at, *where[axis + 1 :]]

    def element(where: list[ir.Value], position: ir.Value) -> ir.Value:
        return index.read_safely(e, x, source(where, position), own[axis : axis + 1])

    def name(where: list[ir.Value], position: ir.Value) -> ir.Value:
        if names is None or op.indices is None:
            return arith.ExtSIOp(i64, position).result
        found = index.read_safely(e, names, source(where, position), own[axis : axis + 1])
        b, kind = ArithScalars(dtypes.INT64, dtypes.INT64), TensorType.of(op.indices).dtype
        return b.cast(TypedScalar(found, kind), dtypes.INT64).value

    i64 = ir.IntegerType.get_signless(64)
    every = tuple(range(t.rank))
    return [
        index.from_positions(e, extents, t.dtype, element, [positions], [every]),
        index.from_positions(e, extents, dtypes.INT64, name, [positions], [every]),
    ]


def sort_keys(
    e: LoweringContext, x: ir.Value, dtype: DType, largest: bool
) -> tuple[ir.Value, DType]:
    """Signed integers in the order of the elements: descending keys are what topk asks for.

    NaN is the largest element, and -0 equals 0.
    """
    kind = dtypes.INT64 if dtype.bits == 64 or dtype is dtypes.UINT32 else dtypes.INT32

    def body(_: list[ir.Value], element: ir.Value) -> ir.Value:
        value = widen(TypedScalar(element, dtype))
        b = ArithScalars(value.dtype, kind)
        if value.dtype.is_float:
            bits = b.bitcast(b.add(value, 0.0), kind)  # -0 + 0 is 0
            key = ordered(b, bits, kind)
            key = b.select(b.is_nan(value), b.const(int(kind.highest()), kind), key)
        elif dtype is dtypes.UINT64:
            key = b.xor(b.bitcast(value, kind), b.const(int(kind.lowest()), kind))
        else:
            key = b.cast(value, kind)
        return (key if largest else b.not_(key)).value

    if e.options.target == "gpu" and largest and dtype is kind:
        return x, kind  # IREE cannot translate a plain copy dispatch there
    extents = e.extents(x)
    rank = len(extents)
    every = tuple(range(rank))
    return index.from_positions_alone(e, extents, kind, body, [x], [every]), kind
