"""A cache with new rows as one CPU kernel: old rows, zeros and new rows, each where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import tile_size
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent

_Part = Callable[[Index, Index, bool], ir.Value]

ROWS = 256  # of a head, that a work-group makes
WIDEST = 256  # bytes of a row that are copied by one vector


def lower(
    e: LoweringContext,
    t: TensorType,
    tensors: tuple[ir.Value, ir.Value, ir.Value],
    counts: TensorType,
    longest: Extent,
    isa: Isa,
) -> ir.Value | None:
    """Return `past` of `longest` rows with the rows `x`; None where it has no vector loops.

    t: the type of the result. tensors: x, seqlens, past. counts: the type of seqlens.
    """
    x, _, past = tensors
    own, new = e.extents(past), e.extents(x)
    if t.dtype is dtypes.BOOL or 0 in (*own[:2], own[3], *new, longest):
        return None
    dims = [*own[:2], longest, own[3]]
    grid: list[tuple[Extent, int]] = [(own[0], 1), (own[1], 1), (longest, ROWS)]

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        rows = tile_size(k, k.at[2], ROWS, longest)
        made = _Rows(k, t, counts, isa, rows, k.inner(own[3]))
        tile = k.empty((1, 1, rows, made.size), t.dtype)
        at = [k.at[0], k.at[1], k.at[2], 0]
        return [ResultTile(made.run(tile, own[2], new[2]), at, (1, 1, rows, made.size))]

    inner = [d for d in (*own, *new, longest) if not isinstance(d, int)]
    return dispatch(list(tensors), [(dims, t.dtype)], grid, body, inner)[0]


class _Rows:
    """Builds the loops of one work-group over its `rows` rows of `size` elements."""

    def __init__(
        self,
        k: WorkgroupBuilder,
        t: TensorType,
        counts: TensorType,
        isa: Isa,
        rows: Index,
        size: Index,
    ) -> None:
        self.k, self.dtype, self.counts, self.rows, self.size = k, t.dtype, counts, rows, size
        self.batch, self.head, self.start = k.at
        width = t.dtype.size
        self.lanes = isa.lanes * 4 // width
        if isinstance(size, int) and size * width <= WIDEST:
            self.lanes = size

    def run(self, tile: ir.Value, have: Extent, count: Extent) -> ir.Value:
        """Return the tile with all rows. have: those of the cache before; count: the new ones."""
        k = self.k
        old, new = k.inner(have), k.inner(count)
        kept = k.max(0, k.min(self.rows, k.sub(old, self.start)))
        tile = self.copied(tile, k.inputs[2], 0, kept, self.start)
        zero = k.splat(0, self.lanes, self.dtype)
        tile = self.each(tile, kept, self.rows, lambda i, j, masked: zero)
        begin = index.first_new_row(k, k.inputs[1], self.counts, self.batch, new)
        first = k.sub(begin, self.start)
        low, high = (k.max(0, k.min(self.rows, i)) for i in (first, k.add(first, new)))
        return self.copied(tile, k.inputs[0], low, high, k.sub(0, first))

    def copied(
        self, tile: ir.Value, source: ir.Value, low: Index, high: Index, ahead: Index
    ) -> ir.Value:
        """Return the tile with rows [low, high), row i of which is row i + ahead of `source`."""
        k = self.k

        def part(i: Index, j: Index, masked: bool) -> ir.Value:
            at = [self.batch, self.head, k.add(i, ahead), j]
            return k.read(source, at, self.lanes, masked=0.0 if masked else None)

        return self.each(tile, low, high, part)

    def each(self, tile: ir.Value, low: Index, high: Index, part: _Part) -> ir.Value:
        """Return the tile with `part(row, column, masked)` in the rows [low, high)."""
        k = self.k

        def row(i: Index, carried: Sequence[ir.Value]) -> list[ir.Value]:
            return k.along(
                self.size,
                self.lanes,
                carried,
                lambda j, masked, c: [
                    k.write(part(i, j, masked), c[0], [0, 0, i, j], masked=masked)
                ],
            )

        return k.loop(low, high, 1, [tile], row)[0]
