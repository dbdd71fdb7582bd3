"""Packed panels of 8-bit weights: how they are laid out, and the loops over their depth.

A panel has groups of neighbours along the depth. On a processor without an instruction for four
bytes there may be one that sums two products of u8 and i8 in 16 bits (AVX2). It saturates, but not
where the weights of such a pair are small: 255 times the sum of those of one sign fits. Groups of
nothing but such pairs stand first, and are multiplied by it. The others are multiplied as words
(i16), after every other byte, which takes twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.dot_instructions import (
    PAIR,
    Multiply,
    byte_products,
    byte_shift,
    byte_unit,
    pair_byte_products,
)

# what the weights of a pair and of one sign may sum to: 255 times that is in 16 bits
MOST = 128
NUMBER = 4  # bytes of what stands behind a panel

# the neighbours of each row that a group multiplies, by the group's number in its segment
RowBytes = Callable[[Index], Sequence[ir.Value]]


@dataclass(frozen=True)
class BytePanels:
    """The layout of panels: [panel, group, unit neighbours of each of `width` columns].

    Numbers in i32 stand behind the groups of a panel. If the other operand is shifted, the initial
    sums of the panel's columns come first. If groups multiplied as pairs are kept apart, the index
    of each group of a loop in its segment follows. After these indices, each segment has the count
    of its leading groups that are multiplied as pairs.
    """

    isa: Isa
    signed: bool  # other operand is i8, not u8
    width: int  # columns of a panel
    groups: int  # groups along the depth
    segment: int  # groups of one loop; groups behind the last whole segment are in no loop

    @property
    def shift(self) -> int:
        """What is added to the other operand."""
        return byte_shift(self.isa, signed=self.signed)

    @property
    def by_pairs(self) -> bool:
        """Whether groups are told apart."""
        return bool(self.isa.byte_pairs) and not self.isa.byte_dot

    @property
    def key(self) -> Hashable:
        """What the layout depends on."""
        return self.width, byte_unit(self.isa), self.shift, self.by_pairs, self.segment

    @property
    def _segments(self) -> int:
        return self.groups // self.segment if self.segment else 0

    # ---- packing -----------------------------------------------------------------------------

    def finished(self, packed: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return packed panels [panel, group, width * unit] with what stands behind each.

        weights: as a matrix [depth, columns].
        """
        count = len(packed)
        behind: list[np.ndarray] = []
        if self.shift:
            starts = np.zeros((count * self.width,), np.int32)
            starts[: weights.shape[1]] = -self.shift * weights.sum(0, dtype=np.int32)
            behind.append(starts.reshape(count, self.width))
        if self.by_pairs:
            order, firsts = self._order(packed)
            loops = self._segments * self.segment
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

    def _order(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the place in its segment of each group, pairs first, and how many those are."""
        count, loops = len(packed), self._segments * self.segment
        pairs = packed[:, :loops].astype(np.int32)
        pairs = pairs.reshape(count, loops, packed.shape[2] // PAIR, PAIR)
        high, low = np.maximum(pairs, 0).sum(-1), np.minimum(pairs, 0).sum(-1)
        words = ((high > MOST) | (low < -MOST)).any(-1).reshape(count, self._segments, self.segment)
        order = np.argsort(words, -1, kind="stable").reshape(count, loops)
        return order, (~words).sum(-1)

    # ---- reading -----------------------------------------------------------------------------

    def columns(
        self, k: WorkgroupBuilder, w: ir.Value, panel: Index, group: Index
    ) -> list[ir.Value]:
        """Return the registers of a group."""
        size = byte_unit(self.isa) * self.isa.lanes
        count = self.width // self.isa.lanes
        return [k.read(w, [panel, group, j * size], size) for j in range(count)]

    def starts(self, k: WorkgroupBuilder, w: ir.Value, panel: Index) -> list[ir.Value]:
        """Return what the sums of a panel begin with."""
        lanes = self.isa.lanes
        if not self.shift:
            return [k.splat(0, lanes, dtypes.INT32)] * (self.width // lanes)
        kind = k.vector_type(lanes, dtypes.INT32)
        found = self.columns(k, w, panel, self.groups)
        return [vector.BitCastOp(kind, v).result for v in found]

    def added(
        self, k: WorkgroupBuilder, w: ir.Value, panel: Index, segment: Index, rows: RowBytes,
        sums: Sequence[ir.Value], *, shifted: bool = False,
    ) -> list[ir.Value]:  # fmt: skip
        """Return the sums of some rows with the products of a segment.

        shifted: what `rows` gives is, already.
        """
        signed = self.isa.signed_bytes if shifted else self.signed
        exact = byte_products(k, self.isa, signed=signed)
        first = k.mul(segment, self.segment)

        def step(place: Index, group: Index, sums: list[ir.Value], by: Multiply) -> list[ir.Value]:
            columns = self.columns(k, w, panel, k.add(first, group))
            out: list[ir.Value] = []
            for i, x in enumerate(rows(place)):
                out += by(x, columns, sums[i * len(columns) : (i + 1) * len(columns)])
            return out

        if not (self.by_pairs and self.segment):
            return self._loop(k, 0, self.segment, list(sums), lambda g, c: step(g, g, c, exact))
        flat = k.collapse(w, [[0], [1, 2]])
        base = self.groups * self.width * byte_unit(self.isa)
        base += NUMBER * self.width if self.shift else 0

        def number(i: Index) -> Index:
            """One of those behind the panel, past what the sums begin with."""
            at = k.add(base, k.mul(i, NUMBER))
            found = k.read(flat, [panel, at], NUMBER)
            one = vector.BitCastOp(k.vector_type(1, dtypes.INT32), found).result
            value = vector.ExtractOp(one, [], [0]).result
            return arith.IndexCastUIOp(ir.IndexType.get(), value).result

        def ordered(by: Multiply) -> Callable[[Index, list[ir.Value]], list[ir.Value]]:
            return lambda g, c: step(number(k.add(first, g)), g, c, by)

        many = number(k.add(self._segments * self.segment, segment))
        by = pair_byte_products(k, self.isa, signed=signed)
        found = k.loop(0, many, 1, list(sums), ordered(by))
        return k.loop(many, self.segment, 1, found, ordered(exact))

    def _loop(
        self, k: WorkgroupBuilder, start: int, stop: int, sums: list[ir.Value],
        body: Callable[[Index, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:  # fmt: skip
        """Build a loop, unless it has one round or none."""
        if stop - start <= 1:
            return body(start, sums) if stop > start else sums
        return k.loop(start, stop, 1, sums, body)
