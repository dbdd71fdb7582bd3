"""Matmuls in AMX tile registers: 16 rows by 16 columns of sums, 64 bytes of the depth at a time.

Operands are bf16, or 8-bit integers, whose sums are i32. A block of rows is copied to scratch as
tiles of 16 rows by 32 or 64 neighbours. All panels of a workgroup are then multiplied by it, two
registers of rows by two of columns. A long depth is multiplied in parts, whose sums are added where
they are stored. Ends of columns and depth are filled up with 0. LLVM allocates the registers,
configures them, and releases them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.filling import Packing
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.panel import Tiles, packing
from mgx_mlir.passes.lowering.iree import iree_ops

ROWS, COLUMNS = 16, 16  # rows and columns of sums
SUMS = ROWS * COLUMNS  # elements of a register of sums
ACROSS = 2  # registers of rows, and of columns, that are multiplied together
ROW_BYTES = 64  # bytes of a row of an operand's register, and of sums
TILE_BYTES = ROWS * ROW_BYTES  # bytes of a register
_SCRATCH = 96 << 10  # bytes of a block of rows: with its panels it stays in the second cache
_REGISTER = "!llvm.x86_amx"


@dataclass(frozen=True)
class Operands:
    """The elements of A in a register; those of B have the type, but bytes of B are i8."""

    dtype: DType

    @property
    def stored(self) -> DType:
        """Element type of scratch and of weights, without a sign."""
        return dtypes.INT8 if self.dtype.is_integer else self.dtype

    @property
    def chunk(self) -> int:
        """Neighbours along the depth in a row of a register."""
        return ROW_BYTES // self.dtype.size

    @property
    def tile(self) -> int:
        """Elements of a register."""
        return ROWS * self.chunk

    @property
    def unit(self) -> int:
        """Neighbours in 32 bits, whose products go into one sum."""
        return self.chunk // COLUMNS

    @property
    def sums(self) -> DType:
        """Element type of sums."""
        return dtypes.INT32 if self.dtype.is_integer else dtypes.FLOAT

    def chunks_of(self, depth: int) -> int:
        """Return how many chunks a depth has."""
        return -(-depth // self.chunk)

    def instruction(self, isa: Isa) -> str:
        """Return the instruction that multiplies, "" where the CPU has none."""
        return isa.tile_bytes[self.dtype.is_signed] if self.dtype.is_integer else isa.tile_dot


PAIRS = Operands(dtypes.BF16)
CHUNK, TILE = PAIRS.chunk, PAIRS.tile  # sizes of bf16


@dataclass(frozen=True)
class TilePanels:
    """The layout of constant B: [panel, chunk, tile]; a panel is one register wide."""

    operands: Operands
    across: int  # registers of columns that are multiplied together: the panels are a multiple

    @property
    def key(self) -> tuple[object, ...]:
        """Facts that the layout depends on."""
        return ("tile panels", self.operands.unit, self.across)

    def packed(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix [depth, columns] as panels."""
        return self.packing(matrix.shape, matrix.dtype, lambda: matrix).array()

    def packing(
        self, shape: tuple[int, ...], dtype: np.dtype, matrix: Callable[[], np.ndarray]
    ) -> Packing:
        """Return what writes `packed` of a matrix of this shape and type."""
        own = self.operands
        made = packing(
            shape, dtype, matrix, COLUMNS, own.unit, (self.across, own.chunk // own.unit)
        )
        return Packing((made.shape[0], own.chunks_of(shape[0]), own.tile), dtype, made.fill)


@dataclass(frozen=True)
class TiledProduct:
    """Blocks of rows of A by the panels of a workgroup.

    column(group, register, chunk): a register of B, of a group of panels. copied(row, rows, chunk,
    count, scratch): scratch [chunk, block, tile] with `count` chunks of some rows. stored(row,
    rows, group, sums, tiles): the tiles of the results with what follows those rows, whose sums
    are `sums(i)`, a vector for each register of columns.
    """

    k: WorkgroupBuilder
    isa: Isa
    operands: Operands
    blocks: int  # registers of rows that are multiplied together
    across: int  # registers of columns that are multiplied together
    chunks: int  # pieces of the depth
    part: int  # chunks that are in scratch memory together
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
            k.empty((self.part, self.blocks, self.operands.tile), self.operands.stored),
            k.empty((slots, self.blocks * self.across, SUMS), self.operands.sums),
        ]
        return k.each(0, rows, height, [*scratch, *tiles], block)[2:]

    def _sums(self, a: ir.Value, start: Index, chunks: int, group: Index) -> Tiles:
        """Return the sums of some chunks, of which scratch holds A."""
        k, blocks, across = self.k, range(self.blocks), range(self.across)
        own = self.operands

        def chunk(d: Index, sums: Tiles) -> Tiles:
            right = [register_of(k, self.column(group, j, k.add(start, d)), own) for j in across]
            left = [register_of(k, k.read(a, [d, i, 0], own.tile), own) for i in blocks]
            return [
                multiplied(k, self.isa, sums[i * self.across + j], x, y, own)
                for i, x in enumerate(left)
                for j, y in enumerate(right)
            ]

        return k.each(0, chunks, 1, zeros(k, self.blocks * self.across), chunk)

    def _keep(self, sums: Tiles, kept: ir.Value, slot: Index) -> ir.Value:
        """Return scratch with sums, which come out of the registers in no other way."""
        for i, total in enumerate(sums):
            kept = self.k.write(sums_of(self.k, total, self.operands), kept, [slot, i, 0])
        return kept

    def _row_of(
        self, kept: ir.Value, slots: Sequence[Index]
    ) -> Callable[[Index], list[ir.Value]]:  # fmt: skip
        """Return what reads the sums of a row of a block, those of all parts of the depth."""
        k = self.k
        add = arith.AddIOp if self.operands.sums.is_integer else arith.AddFOp

        def row(i: Index) -> list[ir.Value]:
            first, at = k.mul(k.div(i, ROWS), self.across), k.mul(k.rem(i, ROWS), COLUMNS)
            found: list[ir.Value] = []
            for j in range(self.across):
                own = [k.read(kept, [slot, k.add(first, j), at], COLUMNS) for slot in slots]
                total = own[0]
                for v in own[1:]:
                    total = add(total, v).result
                found.append(total)
            return found

        return row


def register_of(k: WorkgroupBuilder, v: ir.Value, own: Operands = PAIRS) -> ir.Value:
    """Return a vector as an operand's register: LLVM makes one instruction of it and the read."""
    element = "i8" if own.dtype.is_integer else "bf16"
    return _intrinsic(k, f"llvm.x86.cast.vector.to.tile.v{own.tile}{element}", 0, v)


def zeros(k: WorkgroupBuilder, count: int) -> Tiles:
    """Return registers of sums."""
    return [_intrinsic(k, "llvm.x86.tilezero.internal", 2) for _ in range(count)]


def multiplied(
    k: WorkgroupBuilder, isa: Isa, total: ir.Value, left: ir.Value, right: ir.Value,
    own: Operands = PAIRS,
) -> ir.Value:  # fmt: skip
    """Multiply rows of A by columns of B, and add to a register of sums."""
    return _intrinsic(k, own.instruction(isa), 3, total, left, right)


def sums_in(k: WorkgroupBuilder, v: ir.Value) -> ir.Value:
    """Return a vector of sums as a register; the next instruction has to add to it."""
    return _intrinsic(k, f"llvm.x86.cast.vector.to.tile.v{SUMS}f32", 0, v)


def sums_of(k: WorkgroupBuilder, total: ir.Value, own: Operands = PAIRS) -> ir.Value:
    """Return a register of sums as a vector, to be stored."""
    element = "i32" if own.sums.is_integer else "f32"
    name = f"llvm.x86.cast.tile.to.vector.v{SUMS}{element}"
    return k.intrinsic(name, k.vector_type(SUMS, own.sums), total)


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
        for n in (ROWS, ROW_BYTES, ROW_BYTES)[:extents]
    ]
    return k.intrinsic(name, ir.Type.parse(_REGISTER), *numbers, *operands)


def part_of(chunks: int, blocks: int, run: int = 1) -> int:
    """Return how many chunks of a depth are in scratch memory together, in parts of about one size.

    run: chunks that stay together, at most `most_chunks`; they divide the depth.
    """
    runs = chunks // run
    parts = -(-runs // max(1, most_chunks(blocks) // run))
    return run * -(-runs // parts)


def most_chunks(blocks: int) -> int:
    """Return how many chunks of a block of rows fit in scratch."""
    return _SCRATCH // (TILE_BYTES * blocks)
