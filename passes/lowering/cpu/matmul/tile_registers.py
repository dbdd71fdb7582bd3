"""Products of bf16 in tile registers: 16 rows by 16 columns of sums, 32 of the depth at a time.

A block of rows is copied to scratch as tiles of 16 rows by 32 neighbours. All panels of a
work-group are then multiplied by it, two registers of rows by two of columns. A long depth is
multiplied in parts, whose sums are added where they are stored. Ends of columns and depth are
filled up with 0. LLVM allocates the registers, configures them, and releases them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.filling import Packing
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.panel import Tiles, packing
from mgx_mlir.passes.lowering.iree import iree_ops

ROWS, COLUMNS, CHUNK = 16, 16, 32  # rows and columns of sums, and neighbours along the depth
TILE, SUMS = ROWS * CHUNK, ROWS * COLUMNS  # elements of a register: of operands, of sums
ACROSS = 2  # registers of rows, and of columns, that are multiplied together
_PAIR = 2  # neighbours in 32 bits
_SCRATCH = 96 << 10  # bytes of a block of rows: with its panels it stays in the second cache
_REGISTER = "!llvm.x86_amx"
_ROW_BYTES = 2 * CHUNK  # bytes of a row of an operand's register, and of sums


def chunks_of(depth: int) -> int:
    """Return how many chunks a depth has."""
    return -(-depth // CHUNK)


@dataclass(frozen=True)
class TilePanels:
    """The layout of constant B: [panel, chunk, tile]; a panel is one register wide."""

    across: int  # registers of columns that are multiplied together: the panels are a multiple

    @property
    def key(self) -> tuple[object, ...]:
        """Facts that the layout depends on."""
        return ("tile panels", self.across)

    def packed(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix [depth, columns] as panels."""
        return self.packing(matrix.shape, matrix.dtype, lambda: matrix).array()

    def packing(
        self, shape: tuple[int, ...], dtype: np.dtype, matrix: Callable[[], np.ndarray]
    ) -> Packing:
        """Return what writes `packed` of a matrix of this shape and type."""
        made = packing(shape, dtype, matrix, COLUMNS, _PAIR, (self.across, CHUNK // _PAIR))
        return Packing((made.shape[0], chunks_of(shape[0]), TILE), dtype, made.fill)


@dataclass(frozen=True)
class TiledProduct:
    """Blocks of rows of A by the panels of a work-group.

    column(group, register, chunk): a register of B, of a group of panels. copied(row, rows, chunk,
    count, scratch): scratch [chunk, block, tile] with `count` chunks of some rows. stored(row,
    rows, group, sums, tiles): the tiles of the results with what follows those rows, whose sums
    are `sums(i)`, a vector for each register of columns.
    """

    k: WorkgroupBuilder
    isa: Isa
    blocks: int  # registers of rows that are multiplied together
    across: int  # registers of columns that are multiplied together
    chunks: int  # pieces of the depth
    part: int  # chunks that stand in scratch together
    groups: int  # groups of panels, at most
    column: Callable[[Index, int, Index], ir.Value]
    copied: Callable[[Index, Index, Index, int, ir.Value], ir.Value]
    stored: Callable[[Index, Index, Index, Callable[[Index], list[ir.Value]], Tiles], Tiles]

    def build(self, rows: Index, groups: Index, tiles: Tiles) -> Tiles:
        """Return the tiles of the results after all rows and groups of panels."""
        k, parts, height = self.k, -(-self.chunks // self.part), self.blocks * ROWS
        last = (parts - 1) * self.part

        def block(r: Index, c: Tiles) -> Tiles:
            count = k.min(height, k.sub(rows, r))

            def some(part: Index, chunks: int, c: Tiles) -> Tiles:
                start, is_last = k.mul(part, self.part), part == parts - 1
                a = self.copied(r, count, start, chunks, c[0])

                def group(g: Index, c: Tiles) -> Tiles:
                    slot = k.add(k.mul(part, self.groups), g) if parts > 1 else 0
                    kept = self._keep(self._sums(a, start, chunks, g), c[0], slot)
                    if not is_last:
                        return [kept, *c[1:]]
                    slots = [k.add(n * self.groups, g) for n in range(parts)] if slot else [0]
                    return [kept, *self.stored(r, count, g, self._row_of(kept, slots), c[1:])]

                return [a, *k.each(0, groups, 1, c[1:], group)]

            c = k.each(0, parts - 1, 1, c, lambda part, c: some(part, self.part, c))
            return some(parts - 1, self.chunks - last, c)

        slots = parts * self.groups if parts > 1 else 1
        scratch = [
            k.empty((self.part, self.blocks, TILE), dtypes.BF16),
            k.empty((slots, self.blocks * self.across, SUMS)),
        ]
        return k.each(0, rows, height, [*scratch, *tiles], block)[2:]

    def _sums(self, a: ir.Value, start: Index, chunks: int, group: Index) -> Tiles:
        """Return the sums of some chunks, of which scratch holds A."""
        k, blocks, across = self.k, range(self.blocks), range(self.across)

        def chunk(d: Index, sums: Tiles) -> Tiles:
            right = [register_of(k, self.column(group, j, k.add(start, d))) for j in across]
            left = [register_of(k, k.read(a, [d, i, 0], TILE)) for i in blocks]
            return [
                multiplied(k, self.isa, sums[i * self.across + j], x, y)
                for i, x in enumerate(left)
                for j, y in enumerate(right)
            ]

        return k.each(0, chunks, 1, zeros(k, self.blocks * self.across), chunk)

    def _keep(self, sums: Tiles, kept: ir.Value, slot: Index) -> ir.Value:
        """Return scratch with sums, which come out of the registers in no other way."""
        for i, total in enumerate(sums):
            kept = self.k.write(sums_of(self.k, total), kept, [slot, i, 0])
        return kept

    def _row_of(
        self, kept: ir.Value, slots: Sequence[Index]
    ) -> Callable[[Index], list[ir.Value]]:  # fmt: skip
        """Return what reads the sums of a row of a block, those of all parts of the depth."""
        k = self.k

        def row(i: Index) -> list[ir.Value]:
            first, at = k.mul(k.div(i, ROWS), self.across), k.mul(k.rem(i, ROWS), COLUMNS)
            found: list[ir.Value] = []
            for j in range(self.across):
                own = [k.read(kept, [slot, k.add(first, j), at], COLUMNS) for slot in slots]
                total = own[0]
                for v in own[1:]:
                    total = arith.AddFOp(total, v).result
                found.append(total)
            return found

        return row


def register_of(k: WorkgroupBuilder, v: ir.Value) -> ir.Value:
    """Return a vector as an operand's register: LLVM makes one instruction of it and the read."""
    return _intrinsic(k, f"llvm.x86.cast.vector.to.tile.v{TILE}bf16", 0, v)


def zeros(k: WorkgroupBuilder, count: int) -> Tiles:
    """Return registers of sums."""
    return [_intrinsic(k, "llvm.x86.tilezero.internal", 2) for _ in range(count)]


def multiplied(
    k: WorkgroupBuilder, isa: Isa, total: ir.Value, left: ir.Value, right: ir.Value
) -> ir.Value:
    """Return the sums of a register with the products of rows of A by columns of B."""
    return _intrinsic(k, isa.tile_dot, 3, total, left, right)


def sums_of(k: WorkgroupBuilder, total: ir.Value) -> ir.Value:
    """Return a register of sums as a vector, which is to be written."""
    name = f"llvm.x86.cast.tile.to.vector.v{SUMS}f32"
    return k.intrinsic(name, k.vector_type(SUMS), total)


def _intrinsic(k: WorkgroupBuilder, name: str, extents: int, *operands: ir.Value) -> ir.Value:
    """Return a register that an instruction makes.

    extents: how many of rows, and bytes of a row of the result and of what is summed, it asks
    for. All are those of whole registers.
    """
    kind = ir.IntegerType.get_signless(16)
    numbers = [
        iree_ops.build(
            "llvm.mlir.constant", (), [kind], attributes={"value": ir.IntegerAttr.get(kind, n)}
        ).result
        for n in (ROWS, _ROW_BYTES, _ROW_BYTES)[:extents]
    ]
    return k.intrinsic(name, ir.Type.parse(_REGISTER), *numbers, *operands)


def part_of(chunks: int, blocks: int, run: int = 1) -> int:
    """Return how many chunks of a depth stand in scratch together, in parts of about one size.

    run: chunks that stay together, at most `most_chunks`; they divide the depth.
    """
    runs = chunks // run
    parts = -(-runs // max(1, most_chunks(blocks) // run))
    return run * -(-runs // parts)


def most_chunks(blocks: int) -> int:
    """Return how many chunks of a block of rows fit in scratch."""
    return _SCRATCH // (_ROW_BYTES * ROWS * blocks)
