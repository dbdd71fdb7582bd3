"""Indices of elements in the order of integer keys, as one CPU kernel: runs of a row are merged.

Runs of 1, 2, 4, .. indices become runs twice as long, until one is left; of equal keys the lower
index stays first. The time is O(n log n) for n elements, whatever k is.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import AxisView
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent


def best_indices(
    e: LoweringContext, keys: ir.Value, kind: DType, axis: int, extents: Sequence[Extent]
) -> ir.Value:
    """Return the indices (i32) of the largest of `keys` along `axis`, best first, of `extents`.

    `keys` are signed integers. Of equal keys the lower index comes first.
    """
    own = e.extents(keys)
    view = AxisView.of(e, keys, TensorType(kind, tuple(e.static_dims(own))), axis)
    outer, n, inner = view.dims
    wanted = extents[axis]
    lines = e.mul(outer, inner)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        row, column = k.at
        line, count = k.add(k.mul(row, k.inner(inner)), column), k.inner(n)
        sort = _Sort(k, row, column, count)
        rounds = sort.rounds()
        made = k.loop(
            0, count, 1, [k.empty([1, 2, count], dtypes.INT32)],
            lambda i, c: [k.put(_i32(i), c[0], [0, 0, i])],
        )  # fmt: skip
        (rows,) = k.loop(0, rounds, 1, made, lambda r, c: [sort.merged(r, c[0])])
        # the row that was written last
        row_of, most = k.rem(rounds, 2), k.inner(wanted)
        (best,) = k.loop(
            0, most, 1, [k.empty([1, most, 1], dtypes.INT32)],
            lambda i, c: [k.put(k.element(rows, [0, row_of, i]), c[0], [0, i, 0])],
        )  # fmt: skip
        return [
            ResultTile(rows, [line, 0, 0], [1, 2, count]),
            ResultTile(best, [row, 0, column], [1, most, 1]),
        ]

    # scratch of a dynamic size is a result that nothing reads
    results = [([lines, 2, n], dtypes.INT32), ([outer, wanted, inner], dtypes.INT32)]
    _, found = dispatch(
        [view.tensor], results, [(outer, 1), (inner, 1)], body, [*view.dims, wanted]
    )
    out = TensorType(dtypes.INT32, tuple(e.static_dims(extents)))
    return view.restored(e, found, out, wanted)


class _Sort:
    """Sorts the indices of one line, from one of two rows into the other and back."""

    def __init__(self, k: WorkgroupBuilder, row: Index, column: Index, count: Index) -> None:
        self.k, self.row, self.column, self.count = k, row, column, count

    def rounds(self) -> Index:
        """Return how often runs are doubled until one holds all."""
        if isinstance(self.count, int):
            return max(self.count - 1, 0).bit_length()
        last = self.k.index(self.k.max(self.k.sub(self.count, 1), 0))
        i64 = ir.IntegerType.get_signless(64)
        zeros = math.CountLeadingZerosOp(arith.IndexCastOp(i64, last).result).result
        return self.k.sub(64, arith.IndexCastOp(ir.IndexType.get(), zeros).result)

    def merged(self, number: ir.Value, rows: ir.Value) -> ir.Value:
        """Return the rows with runs of 2**(number + 1) indices in the one that was written last."""
        k = self.k
        width = arith.ShLIOp(k.index(1), number).result
        source = k.rem(number, 2)

        def pair(start: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
            middle = k.min(k.add(start, width), self.count)
            end = k.min(k.add(start, k.mul(width, 2)), self.count)
            return k.loop(
                start, end, 1, [start, k.index(middle), c[0]],
                lambda i, state: self.one(i, middle, end, source, state),
            )[2:]  # fmt: skip

        return k.loop(0, self.count, k.mul(width, 2), [rows], pair)[0]

    def one(
        self, i: ir.Value, middle: Index, end: Index, source: Index, state: list[ir.Value]
    ) -> list[ir.Value]:
        """Write the better of the two runs' next indices (`state`) at `i`."""
        k, (a, b, rows) = self.k, state
        top = k.sub(self.count, 1)
        left, right = (k.element(rows, [0, source, k.min(at, top)]) for at in (a, b))
        not_worse = arith.CmpIOp(arith.CmpIPredicate.sge, self.key(left), self.key(right)).result
        alone = arith.CmpIOp(arith.CmpIPredicate.sge, b, k.index(end)).result
        takes = arith.AndIOp(k.is_less(a, middle), arith.OrIOp(alone, not_worse).result).result
        position = arith.SelectOp(takes, left, right).result
        step = arith.IndexCastUIOp(ir.IndexType.get(), takes).result
        return [
            k.index(k.add(a, step)),
            k.index(k.sub(k.add(b, 1), step)),
            k.put(position, rows, [0, k.sub(1, source), i]),
        ]

    def key(self, position: ir.Value) -> ir.Value:
        at = arith.IndexCastOp(ir.IndexType.get(), position).result
        return self.k.element(self.k.inputs[0], [self.row, at, self.column])


def _i32(i: ir.Value) -> ir.Value:
    return arith.IndexCastOp(ir.IntegerType.get_signless(32), i).result
