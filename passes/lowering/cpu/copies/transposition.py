"""A view that changes two blocks of dims over, of which only the run knows the extents: a kernel.

Squares of as many rows as a register has lanes are turned in registers. Where all extents are known
turned.py has the loops, for processors on which the backend does less well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.copies import turned
from mgx_mlir.passes.lowering.cpu.frame.axis_view import tile_size
from mgx_mlir.passes.lowering.cpu.frame.elements import SQUARE, interleaved, is_word, turned_square
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import DimMap, Expr, Extent, Leaf, behind_views
from mgx_mlir.passes.lowering.select import Refusal

# lanes that are turned together, at most, by the bytes of an element
SQUARES = {1: 16, 2: 8, 4: 8, 8: 4}
LINE = 64  # bytes of a line of the cache
ROWS = 256  # of the source in a work-group: with a line of each, a half of the first cache


@dataclass(frozen=True)
class Plan:
    """A view [lead, rows, columns] -> [lead, columns, rows] of a tensor, `x` with `wanted` dims."""

    x: Expr
    source: Leaf
    dims: tuple[Extent, Extent, Extent]
    wanted: list[Extent]
    lanes: int


def match(e: LoweringContext, x: Expr, isa: Isa) -> Plan | turned.Plan | Refusal:
    """Take a view [.., R, C] -> [.., C, R], where R and C are one dim or several."""
    source, reads = behind_views(x)
    wanted = e.expr_extents(x)
    if all(isinstance(d, int) for d in wanted):
        return turned.match(e, x, isa)
    if not isinstance(source, Leaf):
        return Refusal("it is computed")
    dtype = source.type.dtype
    if dtype.is_bool or dtype.size not in SQUARES:
        return Refusal(f"{dtype} is not turned in registers")
    extents = e.extents(source.value)
    found = _blocks(reads, extents, wanted)
    if found is None:
        return Refusal("it does not exchange two blocks of dims")
    lead, rows, columns = (e.product([extents[i] for i in block]) for block in found)
    lanes = min(isa.lanes * 4 // dtype.size, SQUARES[dtype.size])
    if dtype.size < 4 and isinstance(columns, int) and columns < lanes:
        return Refusal("its rows are shorter than a vector")
    return Plan(x, source, (lead, rows, columns), wanted, lanes)


def build(e: LoweringContext, plan: Plan | turned.Plan) -> ir.Value:
    """Build the transposed tensor."""
    if isinstance(plan, turned.Plan):
        return turned.build(e, plan)
    flat = views.reshaped(e, plan.source.value, list(plan.dims))
    made = _turned(flat, plan.source.type.dtype, plan.dims, plan.lanes)
    return e.refine(views.reshaped(e, made, plan.wanted), plan.x.type)


def _blocks(
    reads: DimMap, own: Sequence[Extent], wanted: Sequence[Extent]
) -> tuple[list[int], list[int], list[int]] | None:
    """Return the source's dims in three blocks, of which the last two change places; else None.

    Extents of 1 are left out, wherever they are.
    """
    kept = [i for i, d in enumerate(own) if not _is_one(d)]
    order = [reads[i] for i in kept]
    read = [n for n, d in enumerate(wanted) if not _is_one(d)]
    if None in order or sorted(n for n in order if n is not None) != read:
        return None
    place = {n: i for i, n in enumerate(read)}
    to = [place[n] for n in order if n is not None]
    lead = 0
    while lead < len(to) and to[lead] == lead:
        lead += 1
    count = len(to) - lead
    for r in range(1, count):
        if to[lead:] == [lead + (i - r) % count for i in range(count)]:
            return kept[:lead], kept[lead : lead + r], kept[lead + r :]
    return None


def _is_one(d: Extent) -> bool:
    return isinstance(d, int) and d == 1


def _turned(
    x: ir.Value, dtype: dtypes.DType, dims: tuple[Extent, Extent, Extent], lanes: int
) -> ir.Value:
    """Make the dispatch: x [B, R, C] -> [B, C, R]."""
    lead, rows, columns = dims
    line = LINE // dtype.size

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        image, column, row = k.at
        wide = tile_size(k, column, line, columns)
        high = tile_size(k, row, ROWS, rows)
        loops = _Squares(k, (image, row, column), k.inner(rows), wide, lanes)
        tile = k.empty((1, wide, high), dtype)

        def some(j: Index, masked: bool, carried: list[ir.Value]) -> list[ir.Value]:
            return k.along(wide, lanes, carried, lambda i, cut, c: loops.turn(j, i, masked, cut, c))

        made = k.along(high, lanes, [tile], some)
        return [ResultTile(made[0], (image, column, row), (1, wide, high))]

    grid = [(lead, 1), (columns, line), (rows, ROWS)]
    return dispatch([x], [((lead, columns, rows), dtype)], grid, body, [lead, rows, columns])[0]


class _Squares:
    """Builds the squares of a work-group that starts at `at`, a place of the source."""

    def __init__(
        self, k: WorkgroupBuilder, at: tuple[Index, Index, Index], rows: Index, wide: Index,
        lanes: int,
    ) -> None:  # fmt: skip
        self.k, self.at, self.rows, self.wide, self.lanes = k, at, rows, wide, lanes

    def turn(
        self, j: Index, i: Index, below: bool, beside: bool, carried: list[ir.Value]
    ) -> list[ir.Value]:
        """Turn the square at row `j` and column `i` of the tile.

        below, beside: it reaches beyond the last row, or the last column. The last row is read in
        place of others. Columns that are none are written where the last one then is.
        """
        k, (image, row, column) = self.k, self.at
        lines: list[ir.Value] = []
        for n in range(self.lanes):
            line = k.add(row, k.add(j, n))
            if below:
                line = k.min(line, k.sub(self.rows, 1))
            where = [image, line, k.add(column, i)]
            lines.append(k.read(k.inputs[0], where, self.lanes, masked=0.0 if beside else None))
        tile = carried[0]
        for n, line in reversed(list(enumerate(_transposed(lines)))):
            to = k.add(i, n)
            if beside:
                to = k.min(to, k.sub(self.wide, 1))
            tile = k.write(line, tile, [0, to, j], masked=below)
        return [tile]


def _transposed(lines: list[ir.Value]) -> list[ir.Value]:
    """Return the columns of a square, by shuffles that a processor has."""
    kind = ir.VectorType(lines[0].type)
    if len(lines) == SQUARE and is_word(kind.element_type):
        return turned_square(lines)
    return interleaved(lines)
