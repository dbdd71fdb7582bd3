"""TopK and sorts on GPUs: an element's rank is the number of elements ahead of it, by pairwise
comparison.

IREE's op keeps a sorted list, by one lane of a workgroup. Pairwise comparisons are n^2 for a row of
n, distributed over all lanes: the third row of a table of 3 x 1021 took 22 million
instructions of one wave, and takes some thousands of each of many waves.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, linalg
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info
from mgx_mlir.passes.lowering.index import alone
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar

_INT = dtypes.INT32
_b = ArithScalars(_INT, _INT)
_SHORT = 64  # most elements of a row that one lane counts: IREE keeps parts of it in scratch memory


def best_indices(
    e: LoweringContext, keys: ir.Value, dtype: DType, axis: int, extents: Sequence[Extent]
) -> ir.Value:
    """Return the indices (i32) of the largest of `keys` along `axis`, best first, of `extents`.

    `keys` are signed integers of a total order. Of equal keys the lower index comes first.
    """
    own = e.extents(keys)
    rank = len(own)
    d = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]
    mine = ir.AffineMap.get(rank + 1, 0, d[:rank])
    others = ir.AffineMap.get(rank + 1, 0, [*d[:axis], d[rank], *d[axis + 1 : rank]])
    iterators = [PARALLEL] * rank + [REDUCTION]

    def counted(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
        here, other = TypedScalar(a, dtype), TypedScalar(b, dtype)
        sooner = TypedScalar(
            arith.CmpIOp(arith.CmpIPredicate.ult, _at(rank), _at(axis)).result, dtypes.BOOL
        )
        scalars = ArithScalars(dtype, dtypes.BOOL)
        tied = _b.and_(scalars.cmp("eq", other, here), sooner)
        ahead = _b.or_(scalars.cmp("gt", other, here), tied)
        return _b.add(TypedScalar(total, _INT), _b.cast(ahead, _INT)).value

    def placed(found: ir.Value, total: ir.Value) -> ir.Value:
        is_it = _b.cmp("eq", TypedScalar(found, _INT), TypedScalar(_at(axis), _INT))
        at = TypedScalar(_at(rank), _INT)
        return _b.add(TypedScalar(total, _INT), _b.select(is_it, at, _b.const(0, _INT))).value

    def ranks() -> list[ir.Value]:
        zero = [e.fill(own, _INT, 0)]
        made = e.generic([keys, keys], zero, [mine, others, mine], iterators, counted)
        return _by_elements(e, made, own, own[axis])

    kind = ir.RankedTensorType(keys.type)
    element = ir.IntegerType.get_signless(32)
    found = alone(e, [ir.RankedTensorType.get(kind.shape, element)], [own], ranks)[0]

    def places() -> list[ir.Value]:
        zero = [e.fill(list(extents), _INT, 0)]
        made = e.generic([found], zero, [others, mine], iterators, placed)
        return _by_elements(e, made, extents, own[axis])

    shape = e.static_dims(list(extents))
    dynamic = ir.ShapedType.get_dynamic_size()
    dims = [dynamic if n < 0 else n for n in shape]
    return alone(e, [ir.RankedTensorType.get(dims, element)], [list(extents)], places)[0]


def _by_elements(
    e: LoweringContext, made: list[ir.Value], out: Sequence[Extent], length: Extent
) -> list[ir.Value]:
    """Give each element of a result a lane, where rows are short; return the result."""
    if isinstance(length, int) and length <= _SHORT and len(out) > 1:
        compilation_info.give(
            e, made[0], lambda arch: compilation_info.window_info(arch, out, 1, planar=True)
        )
    return made


def _at(dim: int) -> ir.Value:
    """Return the index of a loop's dim as i32."""
    return arith.IndexCastOp(ir.IntegerType.get_signless(32), linalg.IndexOp(dim).result).result


__all__ = ["best_indices"]
