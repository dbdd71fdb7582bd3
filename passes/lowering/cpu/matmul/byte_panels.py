"""Panels of 8-bit integers: constant ones, and computed ones that a workgroup packs.

A panel has groups of neighbours along the depth. AVX2 lacks an instruction for four bytes, but has
one that sums two products of u8 and i8 in 16 bits. It saturates unless the weights of a pair are
small: 255 times the sum of those with one sign must fit. Groups with only such pairs come first,
and use it. The others are multiplied as i16 words, even bytes and odd bytes separately, which takes
twice as long.

Where the instruction wants the other sign of A, a panel also has the initial sums of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    WorkgroupBuilder,
)
from mgx_mlir.passes.lowering.cpu.matmul.instructions import (
    PAIR,
    Multiply,
    byte_products,
    byte_shift,
    byte_unit,
    pair_byte_products,
)
from mgx_mlir.passes.lowering.cpu.matmul.panel import Group, Panel, Panels, Tiles

# largest sum of the weights of a pair and of one sign: 255 times that is in 16 bits
MOST = 128
NUMBER = 4  # bytes of a number after a panel


@dataclass(frozen=True)
class BytePanels(Panels):
    """The layout of constant panels of bytes.

    Numbers in i32 follow the groups of a panel. If the other operand is shifted, the initial
    sums of the panel's columns come first. If groups multiplied as pairs are kept apart, the index
    of each group of a loop in its segment follows. After these indices, each segment has the count
    of its leading groups that are multiplied as pairs.
    """

    groups: int  # groups along the depth
    segment: int  # groups of one loop; groups after the last whole segment are unrolled

    @property
    def shift(self) -> int:
        """Offset that is added to A."""
        return byte_shift(self.isa, signed=self.dtype.is_signed)

    @property
    def by_pairs(self) -> bool:
        """Return whether groups of small weights come first, for the instruction of byte pairs."""
        return bool(self.isa.byte_pairs) and not self.isa.byte_dot

    @property
    def key(self) -> tuple[object, ...]:
        """Facts that the layout depends on."""
        return (*super().key, self.shift, self.by_pairs, self.segment)

    @property
    def segments(self) -> int:
        """Number of loops."""
        return self.groups // self.segment if self.segment else 0

    def packed(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix [depth, columns] as panels, each followed by its numbers."""
        packed = super().packed(matrix)
        count = len(packed)
        behind: list[np.ndarray] = []
        if self.shift:
            starts = np.zeros((count * self.width,), np.int32)
            starts[: matrix.shape[1]] = -self.shift * matrix.sum(0, dtype=np.int32)
            behind.append(starts.reshape(count, self.width))
        if self.by_pairs:
            order, firsts = self._order(packed)
            loops = self.segments * self.segment
            inside = np.arange(loops) // max(1, self.segment)
            whole = order + inside * self.segment
            rest = np.tile(np.arange(loops, self.groups), (count, 1))
            at = np.concatenate([whole, rest], 1)
            packed = np.take_along_axis(packed, at[:, :, None], 1)
            behind += [order.astype(np.int32), firsts.astype(np.int32)]
        if not behind:
            return packed
        size = packed.shape[2]
        numbers = np.concatenate(behind, 1).astype("<i4").view(np.int8).reshape(count, -1)
        filled = np.pad(numbers, [(0, 0), (0, -numbers.shape[1] % size)])
        return np.concatenate([packed, filled.reshape(count, -1, size)], 1)

    def packing(
        self, shape: tuple[int, ...], dtype: np.dtype, matrix: Callable[[], np.ndarray]
    ) -> np.ndarray:
        return self.packed(matrix())

    def _order(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each group's index in its segment, pairs first, and the number of pairs."""
        count, loops = len(packed), self.segments * self.segment
        pairs = packed[:, :loops].astype(np.int32)
        pairs = pairs.reshape(count, loops, packed.shape[2] // PAIR, PAIR)
        high, low = np.maximum(pairs, 0).sum(-1), np.minimum(pairs, 0).sum(-1)
        words = ((high > MOST) | (low < -MOST)).any(-1).reshape(count, self.segments, self.segment)
        order = np.argsort(words, -1, kind="stable").reshape(count, loops)
        return order, (~words).sum(-1)

    def panel(
        self, k: WorkgroupBuilder, w: ir.Value, number: Index, *, shifted: bool = False
    ) -> BytePanel:
        """Return one panel of `packed`; shifted: A was shifted before the kernel's loops."""
        signed = self.isa.signed_bytes if shifted else self.dtype.is_signed
        multiply = byte_products(k, self.isa, signed=signed)
        size, vectors = self.unit * self.isa.lanes, self.width // self.isa.lanes
        starts = self.groups if self.shift else None
        if not (self.by_pairs and self.segment):
            return BytePanel(k, w, (number,), size, vectors, multiply, starts)
        by_pairs = pair_byte_products(k, self.isa, signed=signed)
        return OrderedPanel(k, w, (number,), size, vectors, multiply, starts, self, by_pairs)


@dataclass(frozen=True)
class BytePanel(Panel):
    """A panel of bytes."""

    starts: int | None  # group that has the initial sums, None where they are 0

    def begun(self, sums: Tiles) -> Tiles:
        """Return the sums with the panel's initial ones."""
        if self.starts is None:
            return sums
        kind = ir.VectorType(sums[0].type)
        found = [vector.BitCastOp(kind, v).result for v in self.columns(self.starts)]
        return [arith.AddIOp(v, found[i % len(found)]).result for i, v in enumerate(sums)]


@dataclass(frozen=True)
class OrderedPanel(BytePanel):
    """A panel whose segments have two loops: groups for `by_pairs`, then others."""

    layout: BytePanels
    by_pairs: Multiply

    def added(self, segment: Index, count: Index, read: Group, sums: Tiles) -> Tiles:
        """Return the sums with a segment; `read` is asked for groups in the panel's order."""
        k, layout, first = self.k, self.layout, self.k.mul(segment, count)
        flat = k.collapse(self.source, [[0], [1, 2]])
        base = layout.groups * layout.width * layout.unit
        base += NUMBER * layout.width if layout.shift else 0

        def number(i: Index) -> Index:
            """Return number `i` after the panel's initial sums."""
            found = k.read(flat, [*self.at, k.add(base, k.mul(i, NUMBER))], NUMBER)
            one = vector.BitCastOp(k.vector_type(1, dtypes.INT32), found).result
            value = vector.ExtractOp(one, [], [0]).result
            return arith.IndexCastUIOp(ir.IndexType.get(), value).result

        def ordered(panel: Panel) -> Callable[[Index, Tiles], Tiles]:
            def step(g: Index, sums: Tiles) -> Tiles:
                group = k.add(first, g)
                return panel.step(read, number(group), group, sums, masked=False)

            return step

        pairs = Panel(k, self.source, self.at, self.size, self.vectors, self.by_pairs)
        many = number(k.add(layout.segments * layout.segment, segment))
        found = k.loop(0, many, 1, sums, ordered(pairs))
        return k.loop(many, count, 1, found, ordered(self))


# ---- computed B -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ByteScratch:
    """The packing of a computed B: panels of `width` columns, `block` of the depth at a time.

    The scratch has one group more than the block, for the initial sums.
    """

    isa: Isa
    signed: bool  # A is i8, not u8
    width: int
    block: int

    @staticmethod
    def room(isa: Isa, width: int) -> int:
        """Return the depth that fits into scratch, a multiple of a group."""
        unit = byte_unit(isa)
        return (SCRATCH_BYTES // (width * unit) - 1) * unit

    @property
    def shape(self) -> tuple[int, int]:
        """The dims of the scratch."""
        unit = byte_unit(self.isa)
        return self.block // unit + 1, self.width * unit

    def packed(
        self, k: WorkgroupBuilder, read: Callable[[Index, Index], ir.Value], count: Index,
        into: ir.Value,
    ) -> BytePanel:  # fmt: skip
        """Return the panel of `count` of the depth, filled up to whole groups.

        read(depth, column): a register along the columns. Past the end the last row is read again,
        which is multiplied by 0.
        """
        isa, lanes, unit = self.isa, self.isa.lanes, byte_unit(self.isa)
        shift, vectors = byte_shift(isa, signed=self.signed), self.width // lanes
        size, kind = unit * lanes, k.vector_type(lanes, dtypes.INT32)
        ones = k.splat(1, size, dtypes.INT8)
        none = [k.splat(0, lanes, dtypes.INT32)] * (vectors if shift else 0)
        last = k.sub(count, 1)

        def group(d: Index, ragged: bool, carried: Tiles) -> Tiles:
            out, totals = carried[0], list(carried[1:])
            at = [k.add(d, i) for i in range(unit)]
            at = [k.min(i, last) for i in at] if ragged else at
            for j in range(vectors):
                found = _neighbours([read(i, j * lanes) for i in at])
                out = k.write(found, out, [k.div(d, unit), j * size])
                if shift:
                    totals[j] = k.intrinsic(isa.byte_dot, kind, totals[j], ones, found)
            return [out, *totals]

        out, *totals = k.along(count, unit, [into, *none], group)
        starts = self.shape[0] - 1
        for j, total in enumerate(totals):
            start = arith.MulIOp(total, k.splat(-shift, lanes, dtypes.INT32)).result
            start = vector.BitCastOp(k.vector_type(size, dtypes.INT8), start).result
            out = k.write(start, out, [starts, j * size])
        multiply = byte_products(k, isa, signed=self.signed)
        return BytePanel(k, out, (), size, vectors, multiply, starts if shift else None)


def _neighbours(rows: Sequence[ir.Value]) -> ir.Value:
    """Return rows of bytes in which the bytes of a column are adjacent."""
    found = list(rows)
    while len(found) > 1:
        half = len(found) // 2
        found = [_interleaved(a, b) for a, b in zip(found[:half], found[half:], strict=True)]
    return found[0]


def _interleaved(a: ir.Value, b: ir.Value) -> ir.Value:
    count = ir.VectorType(a.type).shape[0]
    order = [i // 2 + i % 2 * count for i in range(2 * count)]
    return vector.ShuffleOp(a, b, order).result
