"""Many rows by weights of few bits in tile registers: f32 as the sum of two bf16.

The first part is a number rounded to 8 bits, the second part what is left, rounded to 8 bits: 16
bits in all. Three matmuls are summed: first by first, first by second and second by first. The
fourth, of the second parts, is at most 2^-18 of the whole and is left out. Rows are split once, in
a dispatch of their own. A workgroup splits weights as it widens them, some of the depth of two
registers of columns at a time, for all of its rows. Elements of bf16 have no second part: there
weights are rounded to bf16.
An infinity among rows in f32 makes NaN, as infinity less infinity is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul.few_bits import UNIT, Widening
from mgx_mlir.passes.lowering.cpu.matmul.panel import Tiles
from mgx_mlir.passes.lowering.cpu.matmul.tile_registers import (
    COLUMNS,
    PAIRS,
    ROWS,
    SUMS,
    multiplied,
    register_of,
    sums_in,
    sums_of,
)
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from mgx_mlir.passes.lowering.scalar import TypedScalar

BLOCK = 2 * ROWS  # rows that are multiplied together
LEAST_ROWS = 20  # for fewer rows vectors of f32 are faster
_LEAST_WEIGHTS = 1 << 16  # fewer do not pay for a dispatch
MOST_ROWS = 512  # rows of a workgroup, whose sums stand in scratch: 128 KB
_ACROSS = 2  # registers of columns that are multiplied together
_MOST_CHUNKS = 8  # chunks of weights that stand in scratch together, at most
_CHUNK, _TILE, _PAIR = PAIRS.chunk, PAIRS.tile, PAIRS.unit
_HIGH = -(1 << 16)  # bits of an f32 that a bf16 has
_HALF = 1 << 15  # half of the last bit of a bf16


def takes(rows: Index, order: Sequence[int], depth: Index, columns: Index, isa: Isa) -> bool:
    """Return whether many rows are multiplied so; order: that of the first operand's dims."""
    if not isa.tile_dot or (isinstance(rows, int) and rows < LEAST_ROWS) or tuple(order) != (0, 1):
        return False
    return isinstance(depth, int) and isinstance(columns, int) and depth * columns >= _LEAST_WEIGHTS


def _pieces(depth: int) -> tuple[int, int]:
    """Return how many pieces a depth has, and the chunks of each, two or more.

    The first and the last chunk are multiplied outside of the loop over the others.
    """
    chunks = max(2, PAIRS.chunks_of(depth))
    count = -(-chunks // _MOST_CHUNKS)
    return count, -(-chunks // count)


def _type_of(x: ir.Value) -> DType:
    return dtypes.from_mlir(ir.RankedTensorType(x.type).element_type)


def parts_of(x: ir.Value) -> int:
    """Return how many bf16 stand for an element."""
    return 1 if _type_of(x) is dtypes.BF16 else 2


def split_rows(x: ir.Value, rows: Index, depth: int, isa: Isa) -> ir.Value:
    """Make the dispatch that splits rows [rows, depth] into tiles [block, chunk, part, 2, tile].

    Past the last row that is read again, and past the end of the depth there is 0.
    """
    build, parts, chunks = IndexBuilder(), parts_of(x), math.prod(_pieces(depth))
    blocks = build.div(build.add(rows, BLOCK - 1), BLOCK)
    dims: list[Index] = [blocks, chunks, parts, BLOCK // ROWS, _TILE]

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        (block,), (x,) = k.at, k.inputs
        first, last = k.mul(block, BLOCK), k.sub(k.inner(rows), 1)
        dtype = _type_of(x)

        def chunk(c: Index, carried: Tiles, *, masked: bool) -> Tiles:
            def row(i: Index, carried: Tiles) -> Tiles:
                out, at = carried[0], k.min(k.add(first, i), last)
                found: list[list[ir.Value]] = []
                for d in (0, COLUMNS):
                    where = [at, k.add(k.mul(c, _CHUNK), d)]
                    read = k.read(x, where, COLUMNS, masked=0.0 if masked else None)
                    wide = widen(k, TypedScalar(read, dtype), COLUMNS).value
                    found.append(_split(k, isa, wide, parts))
                for p, (low, high) in enumerate(zip(*found, strict=True)):
                    whole = vector.ShuffleOp(low, high, list(range(_CHUNK))).result
                    place = [0, c, p, k.div(i, ROWS), k.mul(k.rem(i, ROWS), _CHUNK)]
                    out = k.write(whole, out, place)
                return [out]

            return k.loop(0, BLOCK, 1, carried, row)

        made = [k.empty((1, chunks, parts, BLOCK // ROWS, _TILE), dtypes.BF16)]
        whole = depth // _CHUNK
        made = k.each(0, whole, 1, made, lambda c, m: chunk(c, m, masked=False))
        made = k.each(whole, chunks, 1, made, lambda c, m: chunk(c, m, masked=True))
        sizes = (1, chunks, parts, BLOCK // ROWS, _TILE)
        return [ResultTile(made[0], (block, 0, 0, 0, 0), sizes)]

    return dispatch([x], [(dims, dtypes.BF16)], [(blocks, 1)], body, [rows])[0]


def _split(k: WorkgroupBuilder, isa: Isa, x: ir.Value, parts: int) -> list[ir.Value]:
    """Return a vector of f32 as vectors of bf16."""
    kind = k.vector_type(COLUMNS, dtypes.BF16)
    first = k.intrinsic(isa.bf16_round, kind, x)
    if parts == 1:
        return [first]
    rest = arith.SubFOp(x, arith.ExtFOp(k.vector_type(COLUMNS), first).result).result
    return [first, k.intrinsic(isa.bf16_round, kind, rest)]


def _rounded(k: WorkgroupBuilder, x: ir.Value) -> ir.Value:
    """Return the bits of f32, of which the high half is rounded."""
    bits = vector.BitCastOp(k.vector_type(COLUMNS, dtypes.INT32), x).result
    return arith.AddIOp(bits, k.splat(_HALF, COLUMNS, dtypes.INT32)).result


@dataclass(frozen=True)
class SplitProduct:
    """All rows of a workgroup by a panel.

    rows: tiles of `split_rows`, the workgroup's from row `first` on. stored(r, sums, tiles): the
    tiles of the results with row `r`, whose sums are a vector for each register of the panel.
    """

    k: WorkgroupBuilder
    isa: Isa
    weights: Widening
    rows: ir.Value
    first: Index
    parts: int
    depth: int
    registers: int  # registers of a panel: 1, or an even number
    most: int  # rows, at most
    stored: Callable[[Index, Tiles, Tiles], Tiles]

    @property
    def _across(self) -> int:
        """Return how many registers of columns are multiplied together."""
        return min(_ACROSS, self.registers)

    @property
    def _chunks(self) -> int:
        """Return how many chunks stand in scratch together."""
        return _pieces(self.depth)[1]

    @property
    def scratch(self) -> Tiles:
        """Return tensors on the stack: weights, and sums."""
        k, blocks = self.k, -(-self.most // BLOCK)
        return [
            k.empty((self._chunks, self.parts, self.registers, _TILE), dtypes.BF16),
            k.empty((blocks, self.registers // self._across, BLOCK // ROWS, self._across, SUMS)),
        ]

    def panel(self, number: Index, count: Index, carried: Tiles) -> Tiles:
        """Multiply `count` rows with a panel; return scratch and tiles."""
        k, (pieces, step) = self.k, _pieces(self.depth)
        blocks = k.div(k.add(count, BLOCK - 1), BLOCK)
        weights, kept, *tiles = carried
        last = (pieces - 1) * step
        kept = self._cleared(blocks, kept)

        def piece(start: Index, c: Tiles, *, ends: bool) -> Tiles:
            own = self._widened(number, start, c[0], ends=ends)
            return [own, self._added(own, blocks, start, c[1])]

        held = k.each(0, last, step, [weights, kept], lambda s, c: piece(s, c, ends=False))
        held = piece(last, held, ends=True)

        def row(r: Index, c: Tiles) -> Tiles:
            half, at = k.div(k.rem(r, BLOCK), ROWS), k.mul(k.rem(r, ROWS), COLUMNS)
            sums: Tiles = []
            for j in range(self.registers):
                group, own = divmod(j, self._across)
                place = [k.div(r, BLOCK), group, half, own, at]
                sums.append(k.read(held[1], place, COLUMNS))
            return self.stored(r, sums, c)

        return [*held, *k.loop(0, count, 1, tiles, row)]

    def _places(self) -> list[tuple[int, int]]:
        """Return the registers of rows and of columns that are multiplied together."""
        return [(i, a) for i in range(BLOCK // ROWS) for a in range(self._across)]

    def _cleared(self, blocks: Index, kept: ir.Value) -> ir.Value:
        k, none = self.k, self.k.splat(0, SUMS)

        def clear(b: Index, c: Tiles) -> Tiles:
            out = c[0]
            for group in range(self.registers // self._across):
                for i, a in self._places():
                    out = k.write(none, out, [b, group, i, a, 0])
            return [out]

        return k.loop(0, blocks, 1, [kept], clear)[0]

    def _widened(self, panel: Index, start: Index, into: ir.Value, *, ends: bool) -> ir.Value:
        """Return scratch with a piece of the weights, in parts; past the depth there is 0."""
        k, w, units = self.k, self.weights, _CHUNK // UNIT
        first, count = k.mul(start, units), self._chunks * units
        if ends:
            assert isinstance(start, int)
            count = -(-(self.depth - start * _CHUNK) // UNIT)

        def unit(u: Index, c: Tiles, *, filled: bool = True) -> Tiles:
            out = c[0]
            for j in range(self.registers):
                rows = [k.splat(0, COLUMNS)] * UNIT
                if filled:
                    rows = w.scaled(panel, k.add(first, u), j * COLUMNS)
                for i in range(0, UNIT, _PAIR):
                    at = k.mul(k.add(k.mul(k.rem(u, units), UNIT), i), COLUMNS)
                    for p, v in enumerate(self._pair(rows[i], rows[i + 1])):
                        out = k.write(v, out, [k.div(u, units), p, j, at])
            return [out]

        made = k.loop(0, count, 1, [into], unit)
        rest = self._chunks * units
        return k.each(count, rest, 1, made, lambda u, c: unit(u, c, filled=False))[0]

    def _pair(self, even: ir.Value, odd: ir.Value) -> list[ir.Value]:
        """Return two rows of weights in parts, the rows' elements of a column side by side."""
        k = self.k
        both = k.vector_type(_CHUNK, dtypes.BF16)
        mask = k.splat(_HIGH, COLUMNS, dtypes.INT32)
        bits = [_rounded(k, v) for v in (even, odd)]

        def joined(low: ir.Value, high: ir.Value) -> ir.Value:
            low = arith.ShRUIOp(low, k.splat(16, COLUMNS, dtypes.INT32)).result
            word = arith.OrIOp(low, arith.AndIOp(high, mask).result).result
            return vector.BitCastOp(both, word).result

        found = [joined(*bits)]
        if self.parts > 1:
            rest: list[ir.Value] = []
            for v, own in zip((even, odd), bits, strict=True):
                cut = vector.BitCastOp(k.vector_type(COLUMNS), arith.AndIOp(own, mask).result)
                rest.append(_rounded(k, arith.SubFOp(v, cut.result).result))
            found.append(joined(*rest))
        return found

    def _added(self, weights: ir.Value, blocks: Index, start: Index, kept: ir.Value) -> ir.Value:
        """Return scratch with the sums of all rows and a piece of the depth.

        LLVM loads and stores registers of sums only next to an instruction that multiplies into
        them. Hence the first and the last chunk are outside of the loop (hazard 50).
        """
        k = self.k

        def block(b: Index, carried: Tiles) -> Tiles:
            at = k.add(k.div(self.first, BLOCK), b)

            def group(g: Index, carried: Tiles) -> Tiles:
                out = carried[0]

                def chunk(d: Index, sums: Tiles) -> Tiles:
                    return self._chunk(at, k.add(start, d), weights, d, g, sums)

                begin = [sums_in(k, k.read(out, [b, g, i, a, 0], SUMS)) for i, a in self._places()]
                last = self._chunks - 1
                sums = k.each(1, last, 1, chunk(0, begin), chunk)
                for (i, a), total in zip(self._places(), chunk(last, sums), strict=True):
                    out = k.write(sums_of(k, total), out, [b, g, i, a, 0])
                return [out]

            return k.each(0, self.registers // self._across, 1, carried, group)

        return k.loop(0, blocks, 1, [kept], block)[0]

    def _chunk(
        self, block: Index, chunk: Index, weights: ir.Value, held: Index, group: Index, sums: Tiles
    ) -> Tiles:
        """Return the sums of a block of rows and a group of columns with a chunk."""
        k, across = self.k, self._across

        def left(p: int) -> Tiles:
            return [
                register_of(k, k.read(self.rows, [block, chunk, p, i, 0], _TILE))
                for i in range(BLOCK // ROWS)
            ]

        def right(p: int) -> Tiles:
            first = k.mul(group, across)
            return [
                register_of(k, k.read(weights, [held, p, k.add(first, a), 0], _TILE))
                for a in range(across)
            ]

        for i, j in ((0, 1), (0, 0), (1, 0)) if self.parts > 1 else ((0, 0),):
            x, y = left(i), right(j)
            sums = [
                multiplied(k, self.isa, total, x[r], y[c])
                for total, (r, c) in zip(sums, self._places(), strict=True)
            ]
        return sums
