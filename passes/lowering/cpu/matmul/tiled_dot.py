"""Matmuls by constant weights in tile registers, and the loops that convolutions share with them.

A workgroup computes some rows of some panels, whose weights stay in the L2 cache. Workgroups that
read the same panels run one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
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
    COLUMNS,
    ROWS,
    SUMS,
    TILE_BYTES,
    Operands,
    TiledProduct,
    TilePanels,
    part_of,
)

MULTIPLIED = (dtypes.BF16, dtypes.UINT8, dtypes.INT8)  # types of A
LEAST_ROWS = 4  # for fewer rows vectors are faster
GROUPS = 8  # least workgroups of a matmul, where it has enough rows and columns
_WEIGHTS = 1 << 20  # bytes of the panels of a workgroup
_SUMS = 96 << 10  # bytes of the sums of parts of the depth
_DYNAMIC_BLOCKS = 2  # blocks of rows of a workgroup where their number is dynamic


@dataclass(frozen=True)
class TiledPlan:
    """The tiling of a matmul: registers that are multiplied together, and workgroups."""

    operands: Operands
    blocks: int  # registers of rows
    across: int  # registers of columns
    chunks: int  # pieces of the depth
    part: int  # chunks that are in scratch memory together
    groups: int  # groups of panels of a workgroup
    rows: int  # rows of a workgroup

    @property
    def width(self) -> int:
        """Columns of a group of panels."""
        return self.across * COLUMNS

    @property
    def scratch(self) -> int:
        """Bytes of a workgroup's stack."""
        parts = -(-self.chunks // self.part)
        kept = 1 if parts == 1 else parts * self.groups
        sums = kept * self.blocks * self.across * SUMS
        return self.part * self.blocks * TILE_BYTES + self.operands.sums.size * sums

    @property
    def layout(self) -> TilePanels:
        """Layout of the weights."""
        return TilePanels(self.operands, self.across)


def plan(
    operands: Operands, rows: int | None, chunks: int, columns: int, run: int = 1
) -> TiledPlan:
    """Return the tiling; rows: None where the run says how many. run: as in `part_of`."""
    blocks = ACROSS if rows is None or rows > ROWS else 1
    across = ACROSS if columns > COLUMNS else 1
    count, height = -(-columns // (across * COLUMNS)), blocks * ROWS
    part = part_of(chunks, blocks, run)
    most = max(1, _WEIGHTS // (chunks * TILE_BYTES * across))
    if part < chunks:
        slot = 4 * height * across * COLUMNS * -(-chunks // part)
        most = max(1, min(most, _SUMS // slot))
    have = _DYNAMIC_BLOCKS if rows is None else -(-rows // height)
    # copies of rows are shared by all groups of panels: these are cut as little as workers need
    cuts = max(-(-count // most), min(count, -(-GROUPS // have)))
    # several blocks of rows, rather than many workgroups
    many = have * cuts // (4 * GROUPS) if rows is not None else _DYNAMIC_BLOCKS
    return TiledPlan(
        operands, blocks, across, chunks, part, -(-count // cuts), height * max(1, many)
    )


class Copies(Protocol):
    """A of a workgroup."""

    def copied(self, r: Index, rows: Index, start: Index, count: int, into: ir.Value) -> ir.Value:
        """Return scratch [chunk, block, tile] with some chunks of rows from `r` on.

        Values past the last row are not kept.
        """
        ...


def matmul(
    rows: Index, depth: int, columns: int, cut: TiledPlan, isa: Isa, operands: Sequence[ir.Value],
    epilogue: Epilogue, captured: Sequence[Index] = (),
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch of a matmul; operands: A [rows, depth], weights in the plan's layout."""
    return product(
        rows, columns, cut, isa, operands, epilogue, captured,
        lambda k, row: _Rows(k, cut, depth, row),
    )  # fmt: skip


def product(
    rows: Index, columns: int, cut: TiledPlan, isa: Isa, operands: Sequence[ir.Value],
    epilogue: Epilogue, captured: Sequence[Index],
    copies: Callable[[WorkgroupBuilder, Index], Copies],
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch: results of [rows, columns].

    operands: A, and weights in the plan's layout. captured: further extents that the epilogue and
    the copies ask for. copies(k, row): those of a workgroup from a row on.
    """
    return dispatch(
        [*operands, *epilogue.inputs],
        [([rows, columns], d) for d in epilogue.stored],
        [(columns, cut.groups * cut.width), (rows, cut.rows)],
        lambda k: _Loops(k, rows, columns, cut, isa, epilogue, copies(k, k.at[1])).build(),
        captured,
    )


class _Loops:
    """The loops of one workgroup."""

    def __init__(
        self, k: WorkgroupBuilder, rows: Index, columns: int, cut: TiledPlan, isa: Isa,
        epilogue: Epilogue, copies: Copies,
    ) -> None:  # fmt: skip
        self.k, self.cut, self.isa, self.columns, self.copies = k, cut, isa, columns, copies
        self.column, self.row = k.at
        self.rows = k.covered(self.row, cut.rows, k.inner(rows))
        self.stores = Stores(k, epilogue, k.inputs[2:])

    def build(self) -> list[ResultTile]:
        k, cut = self.k, self.cut
        wide = k.covered(self.column, cut.groups * cut.width, self.columns)
        sizes = [self.rows, wide]
        loops = TiledProduct(
            k, self.isa, cut.operands, cut.blocks, cut.across, cut.chunks, cut.part, cut.groups,
            self.weights, self.copies.copied, self.stored,
        )  # fmt: skip
        groups = k.div(k.add(wide, cut.width - 1), cut.width)
        tiles = [k.empty(sizes, d) for d in self.stores.epilogue.stored]
        made = loops.build(self.rows, groups, tiles)
        return [ResultTile(t, [self.row, self.column], sizes) for t in made]

    def weights(self, group: Index, j: int, chunk: Index) -> ir.Value:
        """Return a register of weights."""
        k, across = self.k, self.cut.across
        first = k.mul(k.add(k.div(self.column, self.cut.width), group), across)
        return k.read(k.inputs[1], [k.add(first, j), chunk, 0], self.cut.operands.tile)

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


@dataclass(frozen=True)
class _Rows:
    """Rows of a matrix; past the last one it is read again."""

    k: WorkgroupBuilder
    cut: TiledPlan
    depth: int
    row: Index  # first of the workgroup

    def copied(self, r: Index, rows: Index, start: Index, count: int, into: ir.Value) -> ir.Value:
        k, x = self.k, self.k.inputs[0]
        first, last = k.add(self.row, r), k.sub(rows, 1)
        width = self.cut.operands.chunk

        def chunk(d: Index, c: Tiles, *, masked: bool) -> Tiles:
            out, at = c[0], k.mul(k.add(start, d), width)
            for i in range(self.cut.blocks):
                for j in range(ROWS):
                    row = k.add(first, k.min(i * ROWS + j, last))
                    v = k.read(x, [row, at], width, masked=0.0 if masked else None)
                    out = k.write(v, out, [d, i, j * width])
            return [out]

        ragged = isinstance(start, int) and (start + count) * width > self.depth
        whole = count - 1 if ragged else count
        made = k.each(0, whole, 1, [into], lambda d, c: chunk(d, c, masked=False))
        return (chunk(whole, made, masked=True) if ragged else made)[0]


def takes(rows: Index, depth: Index, dtype: DType, isa: Isa) -> bool:
    """Return whether tile registers multiply rows of a type by constant weights here."""
    if dtype not in MULTIPLIED or not Operands(dtype).instruction(isa):
        return False
    few = isinstance(rows, int) and rows < LEAST_ROWS
    return isinstance(depth, int) and depth >= Operands(dtype).chunk // 2 and not few


def matmul_plan(dtype: DType, rows: Index, depth: int, columns: int) -> TiledPlan:
    """Return the tiling of a matmul; dtype: of A."""
    own, known = Operands(dtype), rows if isinstance(rows, int) else None
    return plan(own, known, own.chunks_of(depth), columns)
