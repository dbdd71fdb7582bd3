"""Matrix products as vector loops: any number of rows, what follows them computed on the sums.

The columns are cut into panels of some registers. A work-group computes some rows of some panels:
tiles of a few rows by one panel accumulate in registers over the whole depth, and what follows the
product is computed on them before they are stored. It reads its panels one after the other, each
for all of its rows.

Constant weights are packed by panels ahead of time: they come from memory once and from the second
cache after that. A computed second operand is packed by the work-group, some depth at a time, to
scratch on its stack; one row alone reads it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.huge_pages import packed_empty
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.elements import Elements
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul.byte_operand import ByteOperand
from mgx_mlir.passes.lowering.cpu.matmul.byte_panels import BytePanels
from mgx_mlir.passes.lowering.cpu.matmul.digits import (
    TENSORS,
    Digits,
    digit_sums,
    digits_of,
    takes_apart,
)
from mgx_mlir.passes.lowering.cpu.matmul.dot_instructions import (
    byte_products,
    byte_unit,
    pair_sums,
)
from mgx_mlir.passes.lowering.cpu.matmul.few_bits import (
    FEW_ROWS,
    UNIT,
    FewBits,
    Widening,
    direct_sums,
)

# emit(k, tensors, sums, at, reads, masked=...): the vectors of every result at an index of it
Emit = Callable[..., list[ir.Value]]
Tiles = list[ir.Value]

GROUPS = 16  # work-groups that a product is cut into where it can be: 2 to 8 workers share them
GROUP_WORK = 1 << 18  # multiply-adds, or weights with few rows, that are worth a work-group
PACKED_FOR = 192  # rows that a panel is packed for at least, where their number is dynamic
OPEN_COLUMNS = 128  # what a dynamic number of columns is taken for where a tile is chosen
ROW_BYTES = 2 << 20  # of the rows of a work-group, which it reads again for each panel

ALONE = 24  # columns that one row alone reads at a time: fewer leave memory waiting


@dataclass(frozen=True)
class DotShape:
    """The extents and types of a matmul; dynamic extents are index values."""

    rows: Index
    depth: Index
    columns: Index
    lead: tuple[Index, ...] = ()  # batch dims of both operands, ahead of rows, depth and columns
    # dims of the first operand by their index in (lead.., row, depth); transposed if out of order
    a: tuple[int, ...] = (0, 1)
    # dims of the second operand by their index in (lead.., depth, column); None: packed weights
    b: tuple[int, ...] | None = None
    # type of the first operand: f32, bf16, i8 or u8; matmuls of integers sum in i32
    dtype: DType = dtypes.FLOAT
    bits: FewBits | None = None  # form of weights packed in few bits, None for others

    @property
    def turned(self) -> bool:
        """Whether neighbours of the second operand are along the depth."""
        return self.b is not None and self.b[-1] != len(self.lead) + 1

    @property
    def packs_bytes(self) -> bool:
        """Whether the second operand is of computed 8-bit integers."""
        return self.b is not None and self.dtype.is_integer

    @property
    def sums(self) -> DType:
        """The type of the sums."""
        return dtypes.INT32 if self.dtype.is_integer else dtypes.FLOAT


@dataclass(frozen=True)
class DotPlan:
    """The tiling of a matmul."""

    width: int  # columns of a panel
    tile: int  # rows of a tile, which is one panel wide
    panels: int  # panels of a work-group
    rows: int  # rows of a work-group
    block: int = 0  # depth that is packed at a time, 0 without packing


def plan(shape: DotShape, isa: Isa) -> DotPlan:
    """Return the cut of a product."""
    high, depth, columns = (d if isinstance(d, int) else None
                            for d in (shape.rows, shape.depth, shape.columns))  # fmt: skip
    batch = 1
    for d in shape.lead:
        batch *= d if isinstance(d, int) else 1
    tile, registers = _tile(high, columns, isa)
    width = registers * isa.lanes
    wanted = max(1, GROUPS // batch)  # of each product of a batch
    # a dynamic extent is taken for a large one
    count = wanted if columns is None else -(-columns // width)
    panel = (depth or 512) * width
    panels = max(1, -(-count // wanted), min(count, GROUP_WORK // (panel * (high or tile))))
    most = max(tile, ROW_BYTES // (4 * (depth or 512)) // tile * tile)
    groups = -(-count // panels)
    # with few columns there are more groups, of fewer rows
    least = max(tile, -(-GROUP_WORK // (panel * panels)))
    if high is None:
        few = -(-4 * least // tile) * tile
        if shape.b is not None or shape.bits is not None:
            few = max(few, PACKED_FOR // tile * tile)
        return _packing(
            shape, isa, DotPlan(width, tile, panels, most if groups >= wanted else min(most, few))
        )
    parts = -(-high // most)
    if groups < wanted:
        parts = max(parts, min(wanted // groups, high // least))
    return _packing(shape, isa, DotPlan(width, tile, panels, _share(high, max(1, parts), tile)))


def _share(rows: int, parts: int, tile: int) -> int:
    """Return the rows of a work-group where there are so many: whole tiles, unless it has all."""
    share = -(-rows // parts)
    return rows if parts == 1 else -(-share // tile) * tile


def _packing(shape: DotShape, isa: Isa, cut: DotPlan) -> DotPlan:
    """Return the cut with the depth that is packed at a time, and rows whose sums can be kept."""
    if shape.b is None and shape.bits is None:
        return cut
    if shape.rows == 1 and not shape.turned and not shape.packs_bytes:
        return cut
    if shape.bits is not None and isinstance(shape.rows, int) and shape.rows <= FEW_ROWS:
        return cut
    room, unit = SCRATCH_BYTES // 4 // cut.width, max(isa.lanes, UNIT)
    if shape.packs_bytes:
        room = ByteOperand.room(isa, cut.width)
    if isinstance(shape.depth, int) and -(-shape.depth // unit) * unit <= room:
        return replace(cut, block=-(-shape.depth // unit) * unit)
    block = room // 2 // unit * unit
    most = SCRATCH_BYTES // 8 // cut.width // cut.tile * cut.tile
    if isinstance(shape.rows, int) and cut.rows > most:
        return replace(cut, block=block, rows=_share(shape.rows, -(-shape.rows // most), cut.tile))
    return replace(cut, block=block, rows=min(cut.rows, most))


def _tile(rows: int | None, columns: int | None, isa: Isa) -> tuple[int, int]:
    """Return the rows and registers of a tile: the fastest with the least columns of nothing."""
    tiles = [(1, r) for _, r in isa.dot_tiles] if rows == 1 else list(isa.dot_tiles)

    def cost(tile: tuple[int, int]) -> float:
        high, registers = tile
        width = registers * isa.lanes
        # half a panel is empty on average where the number of columns is dynamic
        filled = -(-columns // width) * width if columns else OPEN_COLUMNS + width / 2
        if rows == 1:
            return filled / min(1.0, width / ALONE)
        if rows:
            high = -(-rows // -(-rows // high))
        reached = isa.reached[registers - 1] * min(1.0, high * registers / isa.least_sums)
        return filled / reached

    if columns is None:
        return min(tiles, key=cost)
    # registers that no column fills would cost memory: weights are filled up to whole panels
    needed = max(-(-columns // isa.lanes), min(t[1] for t in tiles))
    return min((t for t in tiles if t[1] <= needed), key=cost)


def pack(weights: np.ndarray, width: int, unit: int = 1) -> np.ndarray:
    """Weights [K, N] in the order in which they are read, [panel, K, width], filled up with 0.

    unit: neighbours along the depth that are read together, [panel, K / unit, width * unit]; the
    depth is filled up with 0 as well.
    """
    (depth, columns), whole = weights.shape, weights.shape[0] // unit
    count, units = -(-columns // width), -(-depth // unit)
    found = packed_empty((count, units, width * unit), weights.dtype)
    # panel by panel: the weights may take most of the memory, and are held but once more
    for panel, start in zip(found.reshape(count, units, width, unit), range(0, columns, width),
                            strict=True):  # fmt: skip
        block = weights[:, start : start + width]
        n = block.shape[1]
        panel[:whole, :n] = block[: whole * unit].reshape(whole, unit, n).transpose(0, 2, 1)
        panel[:, n:] = 0
        if whole < units:
            panel[whole] = 0
            panel[whole, :n, : depth - whole * unit] = block[whole * unit :].T
    return found


def byte_panels(depth: int, width: int, isa: Isa, *, signed: bool) -> BytePanels:
    """Return the layout of a product's weights of 8 bits."""
    unit = byte_unit(isa)
    return BytePanels(isa, signed, width, -(-depth // unit), depth // unit)


def product(
    shape: DotShape,
    cut: DotPlan,
    isa: Isa,
    operands: Sequence[ir.Value],
    batch: Index,
    others: Sequence[ir.Value],
    results: Sequence[DType],
    emit: Emit,
    captured: Sequence[Index] = (),
) -> list[ir.Value]:
    """Make the dispatch: results of [rows, columns], or of [batch, rows, columns].

    operands: the second may be of `pack`, or those behind the first be of few_bits. batch: the
    product of the leading extents. others: what `emit` reads. captured: further extents that it
    asks for.
    """

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        return _Body(k, shape, cut, isa, emit).build(results)

    lead = [batch] if shape.lead else []
    if in_digits(shape, isa):
        assert shape.bits is not None
        assert isinstance(shape.depth, int)
        operands = [*operands, *digits_of(operands[0], shape.rows, shape.depth, shape.bits)]
    return dispatch(
        [*operands, *others],
        [([*lead, shape.rows, shape.columns], d) for d in results],
        # the groups that read the same weights run after each other
        [*[(d, 1) for d in lead], (shape.columns, cut.panels * cut.width), (shape.rows, cut.rows)],
        body,
        [shape.depth, *shape.lead, *captured],
    )


def in_digits(shape: DotShape, isa: Isa) -> bool:
    """Return whether few rows are multiplied by their digits: one at least may come alone."""
    few = not isinstance(shape.rows, int) or shape.rows <= FEW_ROWS
    return few and takes_apart(isa, shape.bits, shape.depth, shape.columns)


class _Body:
    """The loops of one work-group.

    What the loops carry is the packed panel, the sums of a part of the depth, and the results;
    the first two only where there are such.
    """

    def __init__(
        self, k: WorkgroupBuilder, shape: DotShape, cut: DotPlan, isa: Isa, emit: Emit
    ) -> None:
        self.k, self.shape, self.cut, self.lanes, self.emit = k, shape, cut, isa.lanes, emit
        self.isa = isa
        self.x, self.w, *self.others = k.inputs
        self.widening: Widening | None = None
        if shape.bits is not None:
            count = 3 if shape.bits.zeros is None else 4
            self.widening = Widening(k, isa, shape.bits, k.inputs[1:count])
            self.others = k.inputs[count:]
        self.bytes: ByteOperand | None = None
        if shape.packs_bytes:
            signed = shape.dtype.is_signed
            self.bytes = ByteOperand(k, isa, cut.width, cut.block, signed=signed)
        self.digits: Digits | None = None
        if in_digits(shape, isa):
            self.digits = Digits(*self.others[:TENSORS])
            self.others = self.others[TENSORS:]
        batch, self.column, self.row = k.at if shape.lead else [0, *k.at]
        self.prefix: list[Index] = [0] if shape.lead else []
        self.batch = batch
        self.lead = k.coordinates(batch, shape.lead)
        self.columns, self.depth = k.inner(shape.columns), k.inner(shape.depth)
        self.masked = not isinstance(self.columns, int) or bool(self.columns % cut.width)
        high = k.inner(shape.rows)
        whole = isinstance(high, int) and high % cut.rows == 0
        self.rows: Index = cut.rows if whole else k.min(cut.rows, k.sub(high, self.row))
        self.vectors = cut.width // isa.lanes
        one = isinstance(self.depth, int) and self.depth <= cut.block
        self.parts = bool(cut.block) and not one
        self.start: Index = 0  # of the depth that is at hand, and how much that is
        self.count: Index = self.depth

    def build(self, results: Sequence[DType]) -> list[ResultTile]:
        k, cut = self.k, self.cut
        step = cut.panels * cut.width
        whole = isinstance(self.columns, int) and self.columns % step == 0
        wide: Index = step if whole else k.min(step, k.sub(self.columns, self.column))
        panels: Index = cut.panels if whole else k.div(k.add(wide, cut.width - 1), cut.width)
        sizes = [*[1 for _ in self.prefix], self.rows, wide]
        carried = [k.empty(sizes, d) for d in results]
        if self.parts:
            carried = [k.empty((cut.rows, cut.width), self.shape.sums), *carried]
        if self.bytes is not None:
            carried = [k.empty(self.bytes.shape, dtypes.INT8), *carried]
        elif cut.block:
            carried = [k.empty((cut.block, cut.width)), *carried]

        def each(panel: Callable[[Index, Tiles], Tiles]) -> Tiles:
            if panels == 1:
                return panel(0, carried)
            return k.loop(0, panels, 1, carried, panel)

        if self.widening is None or (cut.block and isinstance(self.rows, int)):
            carried = each(self.panel)
        elif not cut.block:
            assert isinstance(self.rows, int)
            carried = each(lambda p, c, high=self.rows: self.few_rows(p, high, c))
        else:
            carried = k.when(
                k.is_equal(self.rows, 1),
                lambda: each(lambda p, c: self.few_rows(p, 1, c)),
                lambda: each(self.panel),
                [t.type for t in carried],
            )
        at = [*[self.batch for _ in self.prefix], self.row, self.column]
        return [ResultTile(t, at, sizes) for t in carried[-len(results) :]]

    # ---- a panel -----------------------------------------------------------------------------

    def panel(self, p: Index, carried: Tiles) -> Tiles:
        """All rows of the work-group of one panel: of a dynamic number only the last is not
        whole."""
        k, cut = self.k, self.cut
        if isinstance(self.columns, int):
            return self.panel_of(p, carried)
        end = k.add(self.column, k.mul(p, cut.width), cut.width)

        def build(masked: bool) -> Callable[[], Tiles]:
            def made() -> Tiles:
                self.masked = masked
                return self.panel_of(p, carried)

            return made

        return k.when(
            k.is_less(self.columns, end), build(True), build(False), [t.type for t in carried]
        )

    def panel_of(self, p: Index, carried: Tiles) -> Tiles:
        """`panel` where it is known whether all of its columns are there."""
        k, cut = self.k, self.cut
        if not cut.block:
            return self.panel_rows(p, carried)
        if not self.parts:
            return self.panel_rows(p, [self.packed(p, carried[0]), *carried[1:]])

        def part(start: Index, carried: Tiles) -> Tiles:
            self.start, self.count = start, k.min(cut.block, k.sub(self.depth, start))
            return self.panel_rows(p, [self.packed(p, carried[0]), *carried[1:]])

        # one round at least, which stores the sums of nothing
        return k.loop(0, k.max(self.depth, 1), cut.block, carried, part)

    def few_rows(self, p: Index, high: int, carried: Tiles) -> Tiles:
        """Make a few rows of a panel of few bits, which is widened in registers."""
        k, w, depth = self.k, self.widening, self.shape.depth
        assert w is not None
        assert isinstance(depth, int)

        def reader(row: Index) -> Callable[[Index], ir.Value]:
            def value(d: Index) -> ir.Value:
                at = self.indices(self.shape.a, row, d)
                return k.broadcast(k.element(self.x, at), self.lanes)

            return value

        rows = [k.add(self.row, i) for i in range(high)]
        if self.digits is not None:
            sums = digit_sums(w, self.digits, rows, self.panel_number(p), depth, self.vectors)
            return self.finished(p, 0, high, sums, carried)
        readers = [reader(row) for row in rows]
        sums = direct_sums(w, readers, self.panel_number(p), depth, self.vectors)
        return self.finished(p, 0, high, sums, carried)

    def packed(self, p: Index, into: ir.Value) -> ir.Value:
        """Return the scratch with the part of a panel's columns that is at hand."""
        k, lanes = self.k, self.lanes
        if self.widening is not None:
            first = k.div(self.start, UNIT)
            panel = self.panel_number(p)
            return self.widening.packed(panel, first, self.count, self.vectors, into)
        base = k.add(self.column, k.mul(p, self.cut.width))
        if self.bytes is not None:
            read = self.columns_of
            return self.bytes.packed(
                lambda d, j: read(k.add(self.start, d), k.add(base, j)), self.count, into
            )
        if self.shape.turned:
            return self.packed_turned(base, into)

        def row(d: Index, carried: Tiles) -> Tiles:
            out = carried[0]
            for j in range(self.vectors):
                found = self.columns_of(k.add(self.start, d), k.add(base, j * lanes))
                out = k.write(found, out, [d, j * lanes])
            return [out]

        return k.loop(0, self.count, 1, [into], row)[0]

    def packed_turned(self, base: Index, into: ir.Value) -> ir.Value:
        """`packed` of an operand whose neighbours are along the depth: squares are turned."""
        k, lanes = self.k, self.lanes
        last = k.sub(self.columns, 1)

        def square(d: Index, ragged: bool, carried: Tiles) -> Tiles:
            out = carried[0]
            for j in range(self.vectors):
                rows: list[ir.Value] = []
                for i in range(lanes):
                    # past the end the last column is read again: its sums are not kept
                    column = k.add(base, j * lanes + i)
                    column = k.min(column, last) if self.masked else column
                    at = self.indices(self.shape.b, k.add(self.start, d), column)
                    rows.append(k.read(self.w, at, lanes, masked=0.0 if ragged else None))
                for i, v in enumerate(Elements(k, {}).rows(rows)):
                    out = k.write(v, out, [k.add(d, i), j * lanes])
            return [out]

        return k.along(self.count, lanes, [into], square)[0]

    def indices(self, order: Sequence[int] | None, row: Index, column: Index) -> list[Index]:
        """Return where an operand's element is, through its transpose."""
        at = [*self.lead, row, column]
        return [at[i] for i in order] if order is not None else at

    def columns_of(self, d: Index, column: Index) -> ir.Value:
        """Return a vector along the columns of a computed operand, as it is."""
        at = self.indices(self.shape.b, d, column)
        return self.k.read(self.w, at, self.lanes, masked=0.0 if self.masked else None)

    def panel_rows(self, p: Index, tiles: Tiles) -> Tiles:
        """Cut the rows into tiles, and the rest into smaller ones."""
        k, high = self.k, self.cut.tile
        if isinstance(self.rows, int):
            return self.even_tiles(p, self.rows, tiles)
        rest = k.rem(self.rows, high)
        whole = k.sub(self.rows, rest)
        tiles = k.loop(0, whole, high, tiles, lambda r, c: self.tile(p, r, high, c))
        size = 1 << (high - 1).bit_length() >> 1
        while size:
            tiles = self.rest(p, whole, rest, size, tiles)
            if size > 1:
                left = k.rem(rest, size)
                whole, rest = k.add(whole, k.sub(rest, left)), left
            size //= 2
        return tiles

    def rest(self, p: Index, r: Index, count: Index, high: int, tiles: Tiles) -> Tiles:
        """Make a tile of `high` rows where as many are left."""
        enough, kinds = self.k.is_less(high - 1, count), [t.type for t in tiles]
        return self.k.when(enough, lambda: self.tile(p, r, high, tiles), lambda: tiles, kinds)

    def even_tiles(self, p: Index, rows: int, tiles: Tiles) -> Tiles:
        """Cut a known number of rows into tiles of about one size."""
        k = self.k
        count = -(-rows // self.cut.tile)
        tall = -(-rows // count)
        short = count * tall - rows  # tiles with a row less
        middle = (count - short) * tall
        for start, stop, high in ((0, middle, tall), (middle, rows, tall - 1)):
            if stop - start == high:
                tiles = self.tile(p, start, high, tiles)
            elif stop > start:
                tiles = k.loop(start, stop, high, tiles, lambda r, c, n=high: self.tile(p, r, n, c))
        return tiles

    def tile(self, p: Index, r: Index, high: int, carried: Tiles) -> Tiles:
        """`high` rows from `r` on of panel `p`: sums, and what follows them."""
        k = self.k
        zero = [k.splat(0, self.lanes, self.shape.sums)] * (high * self.vectors)
        if not self.parts:
            return self.finished(p, r, high, self.sums(p, r, high, carried, zero), carried)
        spots = [(k.add(r, i), j * self.lanes) for i in range(high) for j in range(self.vectors)]
        init = k.when(
            k.is_equal(self.start, 0),
            lambda: zero,
            lambda: [k.read(carried[1], at, self.lanes) for at in spots],
            [v.type for v in zero],
        )
        sums = self.sums(p, r, high, carried, init)

        def kept() -> Tiles:
            out = carried[1]
            for at, total in zip(spots, sums, strict=True):
                out = k.write(total, out, at)
            return [carried[0], out, *carried[2:]]

        return k.when(
            k.is_less(k.add(self.start, self.cut.block), self.depth),
            kept,
            lambda: self.finished(p, r, high, sums, carried),
            [t.type for t in carried],
        )

    def finished(
        self, p: Index, r: Index, high: int, sums: Sequence[ir.Value], carried: Tiles
    ) -> Tiles:
        """Store what follows the sums of a tile."""
        k, lanes = self.k, self.lanes
        scratch = bool(self.cut.block) + self.parts
        out = carried[scratch:]
        reads: dict[object, ir.Value] = {}
        left = k.mul(p, self.cut.width)
        base = k.add(self.column, left)
        for i in range(high):
            row = k.add(self.row, r, i)
            for j in range(self.vectors):
                at = [*self.lead, row, k.add(base, j * lanes)]
                total = sums[i * self.vectors + j]
                found = self.emit(k, self.others, total, at, reads, masked=self.masked)
                where = [*self.prefix, k.add(r, i), k.add(left, j * lanes)]
                out = [
                    k.write(v, t, where, masked=self.masked)
                    for v, t in zip(found, out, strict=True)
                ]
        return [*carried[:scratch], *out]

    def sums(
        self, p: Index, r: Index, high: int, carried: Tiles, init: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Return the accumulators of a tile after the depth that is at hand."""
        k, lanes = self.k, self.lanes
        rows = [k.add(self.row, r, i) for i in range(high)]
        base = k.add(self.column, k.mul(p, self.cut.width))

        if self.shape.dtype is dtypes.BF16:
            return pair_sums(
                k, self.isa, (self.x, self.w), rows, self.panel_number(p), self.depth, init
            )
        if self.bytes is not None:

            def neighbours(d: Index, ragged: bool) -> list[ir.Value]:
                at = [self.indices(self.shape.a, row, k.add(self.start, d)) for row in rows]
                masked = 0.0 if ragged else None
                return [k.read(self.x, i, byte_unit(self.isa), masked=masked) for i in at]

            return self.bytes.sums(carried[0], neighbours, self.count, init)
        if self.shape.dtype.is_integer:
            return self.byte_sums(self.panel_number(p), rows)

        def weights(d: Index, column: int) -> ir.Value:
            if self.cut.block:
                return k.read(carried[0], [d, column], lanes)
            if self.shape.b is None:
                return k.read(self.w, [self.panel_number(p), d, column], lanes)
            return self.columns_of(d, k.add(base, column))

        def step(d: Index, sums: list[ir.Value]) -> list[ir.Value]:
            vectors = [weights(d, j * lanes) for j in range(self.vectors)]
            out: list[ir.Value] = []
            for i, row in enumerate(rows):
                at = self.indices(self.shape.a, row, k.add(self.start, d))
                value = k.broadcast(k.element(self.x, at), lanes)
                for j, w in enumerate(vectors):
                    out.append(k.fma(value, w, sums[i * self.vectors + j]))
            return out

        return k.loop(0, self.count, 1, list(init), step)

    def byte_sums(self, panel: Index, rows: Sequence[Index]) -> list[ir.Value]:
        """Return the accumulators of rows of 8-bit integers."""
        k, depth, signed, unit = self.k, self.depth, self.shape.dtype.is_signed, byte_unit(self.isa)
        assert isinstance(depth, int)
        panels = byte_panels(depth, self.cut.width, self.isa, signed=signed)
        sums = panels.starts(k, self.w, panel) * len(rows)

        def neighbours(group: Index, masked: float | None = None) -> list[ir.Value]:
            at = k.mul(group, unit)
            return [k.read(self.x, [row, at], unit, masked=masked) for row in rows]

        sums = panels.added(k, self.w, panel, 0, neighbours, sums)
        if not depth % unit:
            return sums
        multiply = byte_products(k, self.isa, signed=signed)
        columns = panels.columns(k, self.w, panel, depth // unit)
        last: list[ir.Value] = []
        for i, x in enumerate(neighbours(depth // unit, 0.0)):
            last += multiply(x, columns, sums[i * self.vectors : (i + 1) * self.vectors])
        return last

    def panel_number(self, p: Index) -> Index:
        """Return which panel of packed weights it is."""
        return self.k.add(self.k.div(self.column, self.cut.width), p)
