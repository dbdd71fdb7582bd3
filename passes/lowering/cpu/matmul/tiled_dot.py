"""Matmuls of bf16 by constant weights in tile registers.

A work-group computes some rows of some panels, whose weights stay in the second cache: the groups
that read the same ones run after each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, Spot, Stores
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul.panel import Tiles
from mgx_mlir.passes.lowering.cpu.matmul.tile_registers import (
    ACROSS,
    CHUNK,
    COLUMNS,
    ROWS,
    SUMS,
    TILE,
    TiledProduct,
    TilePanels,
    chunks_of,
    part_of,
)

LEAST_ROWS = 4  # for fewer rows vectors are faster
GROUPS = 16  # work-groups that a matmul is cut into where it can be
_WEIGHTS = 1 << 20  # bytes of the panels of a work-group
_SUMS = 96 << 10  # bytes of the sums of parts of the depth
_DYNAMIC_BLOCKS = 2  # blocks of rows of a work-group where their number is dynamic


@dataclass(frozen=True)
class TiledPlan:
    """The tiling of a matmul: registers that are multiplied together, and work-groups."""

    blocks: int  # registers of rows
    across: int  # registers of columns
    groups: int  # groups of panels of a work-group
    rows: int  # rows of a work-group

    @property
    def width(self) -> int:
        """Columns of a group of panels."""
        return self.across * COLUMNS

    def scratch(self, depth: int) -> int:
        """Return the bytes of a work-group's stack."""
        chunks, registers = chunks_of(depth), self.blocks * self.across
        part = part_of(chunks, self.blocks)
        kept = 1 if part == chunks else -(-chunks // part) * self.groups
        return 2 * part * self.blocks * TILE + 4 * kept * registers * SUMS

    @property
    def layout(self) -> TilePanels:
        """Layout of the weights."""
        return TilePanels(self.across)


def plan(rows: int | None, depth: int, columns: int) -> TiledPlan:
    """Return the tiling; rows: None where the run says how many."""
    blocks = ACROSS if rows is None or rows > ROWS else 1
    across = ACROSS if columns > COLUMNS else 1
    count, height = -(-columns // (across * COLUMNS)), blocks * ROWS
    chunks = chunks_of(depth)
    groups = max(1, min(count, _WEIGHTS // (2 * chunks * TILE * across)))
    parts = -(-chunks // part_of(chunks, blocks))
    if parts > 1:
        groups = max(1, min(groups, _SUMS // (4 * height * across * COLUMNS * parts)))
    have = _DYNAMIC_BLOCKS if rows is None else -(-rows // height)
    groups = max(1, min(groups, count * have // GROUPS))
    if rows is None:
        return TiledPlan(blocks, across, groups, height * _DYNAMIC_BLOCKS)
    many = have * -(-count // groups) // (4 * GROUPS)  # several blocks, rather than many groups
    return TiledPlan(blocks, across, groups, height * max(1, many))


def matmul(
    extents: tuple[Index, int, int], cut: TiledPlan, isa: Isa, operands: Sequence[ir.Value],
    epilogue: Epilogue, captured: Sequence[Index] = (),
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch: results of [rows, columns]; extents: rows, depth, columns.

    operands: A [rows, depth], and weights in the plan's layout. captured: further extents that the
    epilogue asks for.
    """
    rows, _, columns = extents
    return dispatch(
        [*operands, *epilogue.inputs],
        [([rows, columns], d) for d in epilogue.stored],
        [(columns, cut.groups * cut.width), (rows, cut.rows)],
        lambda k: _Loops(k, extents, cut, isa, epilogue).build(),
        captured,
    )


class _Loops:
    """The loops of one work-group."""

    def __init__(
        self, k: WorkgroupBuilder, extents: tuple[Index, int, int], cut: TiledPlan, isa: Isa,
        epilogue: Epilogue,
    ) -> None:  # fmt: skip
        self.k, self.cut, self.isa = k, cut, isa
        self.column, self.row = k.at
        rows, self.depth, self.columns = extents
        self.rows = k.covered(self.row, cut.rows, k.inner(rows))
        self.stores = Stores(k, epilogue, k.inputs[2:])

    def build(self) -> list[ResultTile]:
        k, cut = self.k, self.cut
        wide = k.covered(self.column, cut.groups * cut.width, self.columns)
        sizes = [self.rows, wide]
        loops = TiledProduct(
            k, self.isa, cut.blocks, cut.across, chunks_of(self.depth), cut.groups,
            self.weights, self.copied, self.stored,
        )  # fmt: skip
        groups = k.div(k.add(wide, cut.width - 1), cut.width)
        tiles = [k.empty(sizes, d) for d in self.stores.epilogue.stored]
        made = loops.build(self.rows, groups, tiles)
        return [ResultTile(t, [self.row, self.column], sizes) for t in made]

    def weights(self, group: Index, j: int, chunk: Index) -> ir.Value:
        """Return a register of weights."""
        k, across = self.k, self.cut.across
        first = k.mul(k.add(k.div(self.column, self.cut.width), group), across)
        return k.read(k.inputs[1], [k.add(first, j), chunk, 0], TILE)

    def copied(self, r: Index, rows: Index, start: Index, count: int, into: ir.Value) -> ir.Value:
        """Return scratch with some chunks of rows; past the last row it is read again."""
        k, x = self.k, self.k.inputs[0]
        first, last = k.add(self.row, r), k.sub(rows, 1)

        def chunk(d: Index, c: Tiles, *, masked: bool) -> Tiles:
            out, at = c[0], k.mul(k.add(start, d), CHUNK)
            for i in range(self.cut.blocks):
                for j in range(ROWS):
                    row = k.add(first, k.min(i * ROWS + j, last))
                    v = k.read(x, [row, at], CHUNK, masked=0.0 if masked else None)
                    out = k.write(v, out, [d, i, j * CHUNK])
            return [out]

        whole = count - 1 if self._is_ragged(start, count) else count
        made = k.each(0, whole, 1, [into], lambda d, c: chunk(d, c, masked=False))
        return (chunk(whole, made, masked=True) if whole < count else made)[0]

    def _is_ragged(self, start: Index, count: int) -> bool:
        """Return whether the last of some chunks reaches past the depth."""
        return isinstance(start, int) and (start + count) * CHUNK > self.depth

    def stored(
        self, r: Index, rows: Index, group: Index, sums: Callable[[Index], list[ir.Value]],
        tiles: Tiles,
    ) -> Tiles:  # fmt: skip
        """Return the tiles with what follows the sums of some rows."""
        k, left = self.k, self.k.mul(group, self.cut.width)

        def row(i: Index, c: Tiles) -> Tiles:
            spots = [
                Spot(
                    [k.add(self.row, r, i), k.add(self.column, left, j)],
                    [k.add(r, i), k.add(left, j)],
                    self.columns % self.cut.width != 0,
                )
                for j in range(0, self.cut.width, COLUMNS)
            ]
            return self.stores.stored(sums(i), spots, c)

        return k.loop(0, rows, 1, tiles, row)


def takes(rows: Index, depth: Index, dtype: DType, isa: Isa) -> bool:
    """Return whether tile registers multiply rows of a type by constant weights here."""
    few = isinstance(rows, int) and rows < LEAST_ROWS
    deep = isinstance(depth, int) and depth >= CHUNK // 2
    return bool(isa.tile_dot) and dtype is dtypes.BF16 and deep and not few
