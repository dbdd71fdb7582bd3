"""Matmuls as vector loops, for any number of rows, with an epilogue on the sums.

The columns are divided into panels of some registers. A workgroup computes some rows of some
panels: tiles of a few rows by one panel accumulate in registers over the whole depth, and the
epilogue is computed on them before they are stored. Panels are read in sequence, each for all rows
of the workgroup. Constant weights are packed by panels ahead of time: they are read from memory
once, then from the L2 cache. A computed second operand is packed by the workgroup, part of the
depth at a time, to scratch on its stack; for a single row it is read in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.lowering.cpu.frame.axis_view import line_step
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, Spot, Stores
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul.byte_panels import BytePanels, ByteScratch
from mgx_mlir.passes.lowering.cpu.matmul.computed import (
    ComputedB,
    ConstantB,
    Part,
    Rows,
    SourceOfB,
)
from mgx_mlir.passes.lowering.cpu.matmul.digits import (
    FEW,
    MANY,
    TENSORS,
    Digits,
    digits_of,
    uses_digits,
)
from mgx_mlir.passes.lowering.cpu.matmul.few_bits import FEW_ROWS, UNIT, FewBits
from mgx_mlir.passes.lowering.cpu.matmul.few_bits_panels import WidenedB
from mgx_mlir.passes.lowering.cpu.matmul.instructions import unit_of
from mgx_mlir.passes.lowering.cpu.matmul.panel import (
    Panel,
    Panels,
    Parts,
    Tiles,
    multiplied,
    walk,
)
from mgx_mlir.passes.lowering.cpu.matmul.split import (
    BLOCK,
    MOST_ROWS,
    SplitProduct,
    parts_of,
    split_rows,
)
from mgx_mlir.passes.lowering.cpu.nest.nest import Nest, Tile
from mgx_mlir.passes.lowering.cpu.rows.computed_rows import ComputedRows, GivenRows

GROUPS = 16  # workgroups of a matmul where possible, for 2 to 8 workers
GROUP_WORK = 1 << 18  # multiply-adds (with few rows: weights) that pay for a workgroup
PACKED_FOR = 192  # least rows per packed panel, where the number of rows is dynamic
DYNAMIC_COLUMNS = 128  # assumed columns where their number is dynamic, to choose a tile
ROW_BYTES = 2 << 20  # bytes of a workgroup's rows, which are read again for each panel

ALONE = 24  # columns that a single row reads at a time; fewer do not saturate memory
_MOST_FEW = 8  # most rows, where their number is dynamic, for which codes stay in registers
_IN_DIGITS = 2  # rows whose sums of three digits fit in registers beside the codes
_IN_MANY = {2: 3, 1: 5}  # rows whose sums of fewer digits do
_TALL = {2: 4}  # rows of tiles for up to eight rows, where no more rows are computed so
_IN_BYTES = 4  # rows whose sums fit in registers beside weights widened from 8-bit codes


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
    split: bool = False  # many rows are multiplied in tile registers, as sums of two bf16
    many_digits: int = 0  # digits by which many rows are multiplied, as bytes; 0: as numbers

    @property
    def is_along_depth(self) -> bool:
        """Return whether adjacent elements of the second operand are along the depth."""
        return self.b is not None and self.b[-1] != len(self.lead) + 1

    @property
    def packs_bytes(self) -> bool:
        """Return whether the second operand is of computed 8-bit integers."""
        return self.b is not None and self.dtype.is_integer

    def is_one_panel(self, width: int) -> bool:
        """Return whether the second operand lies in memory as a panel of `width` columns does."""
        fits = isinstance(self.columns, int) and self.columns == width
        if self.b is None or self.dtype is not dtypes.FLOAT or not fits:
            return False
        return self.b[-2:] == (len(self.lead), len(self.lead) + 1)

    @property
    def sums(self) -> DType:
        """The type of the sums."""
        return dtypes.INT32 if self.dtype.is_integer else dtypes.FLOAT


@dataclass(frozen=True)
class DotPlan:
    """The tiling of a matmul."""

    width: int  # columns of a panel
    tile: int  # rows of a tile, which is one panel wide
    panels: int  # panels of a workgroup
    rows: int  # rows of a workgroup
    block: int = 0  # depth that is packed at a time, 0 without packing


def plan(shape: DotShape, isa: Isa) -> DotPlan:
    """Return the tiling of a matmul."""
    high, depth, columns = (d if isinstance(d, int) else None
                            for d in (shape.rows, shape.depth, shape.columns))  # fmt: skip
    batch = 1
    for d in shape.lead:
        batch *= d if isinstance(d, int) else 1
    tile, registers = _tile(high, columns, isa)
    if shape.many_digits or (shape.bits is not None and shape.bits.fours):
        tile, registers = next((t for t in isa.dot_tiles if t[1] == 2), (tile, registers))
    if shape.split and registers % 2 and registers > 1:
        tile, registers = next(t for t in isa.dot_tiles if t[1] == registers + 1)
    width = registers * isa.lanes
    wanted = max(1, GROUPS // batch)  # workgroups of each matmul of a batch
    # a dynamic extent is assumed to be large
    count = wanted if columns is None else -(-columns // width)
    panel = (depth or 512) * width
    panels = max(1, -(-count // wanted), min(count, GROUP_WORK // (panel * (high or tile))))
    most = max(tile, ROW_BYTES // (4 * (depth or 512)) // tile * tile)
    groups = -(-count // panels)
    # with few columns there are more groups, of fewer rows
    least = max(tile, -(-GROUP_WORK // (panel * panels)))
    if shape.split:
        share = MOST_ROWS if high is None else _share(high, -(-high // MOST_ROWS), BLOCK)
        return DotPlan(width, tile, panels, -(-share // BLOCK) * BLOCK)
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
    """Return the rows of one of `parts` workgroups: whole tiles, unless it has all rows."""
    share = -(-rows // parts)
    return rows if parts == 1 else -(-share // tile) * tile


def _packing(shape: DotShape, isa: Isa, cut: DotPlan) -> DotPlan:
    """Return the plan with the depth packed at a time, and with rows whose sums can be kept."""
    if shape.many_digits or (shape.b is None and shape.bits is None):
        return cut
    if shape.rows == 1 and not shape.is_along_depth and not shape.packs_bytes:
        return cut
    if shape.bits is not None and isinstance(shape.rows, int) and shape.rows <= FEW_ROWS:
        return cut
    if shape.bits is None and shape.is_one_panel(cut.width):
        return cut
    room, unit = SCRATCH_BYTES // 4 // cut.width, max(isa.lanes, UNIT)
    if shape.packs_bytes:
        room = ByteScratch.room(isa, cut.width)
    if isinstance(shape.depth, int) and -(-shape.depth // unit) * unit <= room:
        return replace(cut, block=-(-shape.depth // unit) * unit)
    block = room // 2 // unit * unit
    most = SCRATCH_BYTES // 8 // cut.width // cut.tile * cut.tile
    if isinstance(shape.rows, int) and cut.rows > most:
        return replace(cut, block=block, rows=_share(shape.rows, -(-shape.rows // most), cut.tile))
    return replace(cut, block=block, rows=min(cut.rows, most))


def _tile(rows: int | None, columns: int | None, isa: Isa) -> tuple[int, int]:
    """Return the rows and registers of a tile: the fastest with the fewest padding columns."""
    tiles = [(1, r) for _, r in isa.dot_tiles] if rows == 1 else list(isa.dot_tiles)

    def cost(tile: tuple[int, int]) -> float:
        high, registers = tile
        width = registers * isa.lanes
        # half a panel is empty on average where the number of columns is dynamic
        filled = -(-columns // width) * width if columns else DYNAMIC_COLUMNS + width / 2
        if rows == 1:
            return filled / min(1.0, width / ALONE)
        if rows:
            high = -(-rows // -(-rows // high))
        reached = isa.reached[registers - 1] * min(1.0, high * registers / isa.least_sums)
        return filled / reached

    if columns is None:
        return min(tiles, key=cost)
    # empty registers would cost memory, as weights are padded to whole panels
    needed = max(-(-columns // isa.lanes), min(t[1] for t in tiles))
    return min((t for t in tiles if t[1] <= needed), key=cost)


def packs_ahead(shape: DotShape, cut: DotPlan) -> bool:
    """Return whether whole panels of a computed operand, which several workgroups would pack for
    themselves, are packed once by a kernel of their own.
    """
    extents = (shape.rows, shape.depth, shape.columns)
    if shape.b != (0, 1) or shape.lead or shape.dtype is not dtypes.FLOAT or not cut.block:
        return False
    if not all(isinstance(d, int) for d in extents):
        return False
    rows, _, columns = (d for d in extents if isinstance(d, int))
    return columns % cut.width == 0 and rows > cut.rows


def packed_ahead(b: ir.Value, depth: int, columns: int, width: int, isa: Isa) -> ir.Value:
    """Build the panels [panel, depth, width] of a computed operand [depth, columns]."""
    panels = columns // width

    def body(tile: Tile) -> list[ir.Value]:
        return tile.lines(lambda row: row.copied(tile.k.inputs[0], [row.at[1], row.at[0]]))

    dims, steps = [panels, depth, width], (1, line_step(depth, width))
    return Nest([b], dims, [dtypes.FLOAT], steps, isa.lanes).run(body)[0]


def panels_of(isa: Isa, dtype: DType, width: int, depth: int) -> Panels:
    """Return the layout of constant weights [depth, columns] beside an operand of type `dtype`."""
    if not dtype.is_integer:
        return Panels(isa, dtype, width)
    unit = unit_of(isa, dtype)
    return BytePanels(isa, dtype, width, -(-depth // unit), depth // unit)


def matmul(
    shape: DotShape, cut: DotPlan, isa: Isa, operands: Sequence[ir.Value], batch: Index,
    epilogue: Epilogue, captured: Sequence[Index] = (), computed: ComputedRows | None = None,
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch: results of [rows, columns], or of [batch, rows, columns].

    operands: the second may be of `panels_of`, or those after the first of few_bits. batch: the
    product of the leading extents. captured: further extents that the epilogue needs. computed:
    rows that the dispatch of their digits computes; the first operand is left out then.
    """
    lead = [batch] if shape.lead else []
    few, many = _few_and_many(shape, isa)
    if counts := _counts(shape, isa):
        assert shape.bits is not None
        assert isinstance(shape.depth, int)
        most, rows = _few_at_most(shape, isa), computed or GivenRows(operands[0])
        apart = digits_of(rows, few, shape.depth, shape.bits, isa, counts, most)
        # no loop reads rows that are computed there: their digits stand in for them
        operands = [*(apart[:1] if computed else []), *operands, *apart]
    if shape.split:
        assert isinstance(shape.depth, int)
        operands = [*operands, split_rows(operands[0], many, shape.depth, isa)]
    return dispatch(
        [*operands, *epilogue.inputs],
        [([*lead, shape.rows, shape.columns], d) for d in epilogue.stored],
        # the groups that read the same weights run after each other
        [*[(d, 1) for d in lead], (shape.columns, cut.panels * cut.width), (shape.rows, cut.rows)],
        lambda k: _Loops(k, shape, cut, isa, epilogue).build(),
        [shape.depth, *shape.lead, *captured],
    )


def in_digits(shape: DotShape, isa: Isa) -> bool:
    """Return whether few rows are multiplied as digits, which includes a single row."""
    few = not isinstance(shape.rows, int) or shape.rows <= FEW_ROWS
    return few and uses_digits(isa, shape.bits, shape.rows, shape.depth, shape.columns)


def reads_digits_alone(shape: DotShape, isa: Isa) -> bool:
    """Return whether no loop of a matmul reads its rows but as digits."""
    if shape.split or not _counts(shape, isa):
        return False
    return bool(shape.many_digits) or (isinstance(shape.rows, int) and shape.rows <= FEW_ROWS)


def _counts(shape: DotShape, isa: Isa) -> list[int]:
    """Return how many digits rows are split into: for few rows, and for many."""
    found = [FEW] if in_digits(shape, isa) else []
    return [*found, shape.many_digits] if shape.many_digits else found


def _few_at_most(shape: DotShape, isa: Isa) -> int:
    """Return for how many rows codes stay in registers, where their number is dynamic."""
    if shape.many_digits == MANY[16]:
        return FEW_ROWS
    return _MOST_FEW if _at_once(shape, isa) > 1 else 1


def _at_once(shape: DotShape, isa: Isa) -> int:
    """Return how many of these are multiplied at once."""
    if in_digits(shape, isa):
        return _IN_DIGITS
    return _IN_BYTES if shape.bits is not None and shape.bits.bits != 4 else 1


def _few_and_many(shape: DotShape, isa: Isa) -> tuple[Index, Index]:
    """Return the rows that are split into digits, and those into parts for tile registers.

    Where their number is dynamic, one of the two is 0.
    """
    rows = shape.rows
    if isinstance(rows, int) or not shape.split:
        return rows, rows
    most = arith.ConstantOp(ir.IndexType.get(), _few_at_most(shape, isa)).result
    none = arith.ConstantOp(ir.IndexType.get(), 0).result
    is_few = arith.CmpIOp(arith.CmpIPredicate.ule, rows, most).result
    return (arith.SelectOp(is_few, rows, none).result, arith.SelectOp(is_few, none, rows).result)


class _Loops:
    """The loops of one workgroup.

    They carry the scratch of B and the sums of a part of the depth, if any, and the results.
    """

    def __init__(
        self, k: WorkgroupBuilder, shape: DotShape, cut: DotPlan, isa: Isa, epilogue: Epilogue
    ) -> None:
        self.k, self.shape, self.cut, self.isa = k, shape, cut, isa
        batch, self.column, self.row = k.at if shape.lead else [0, *k.at]
        self.lead = k.coordinates(batch, shape.lead)
        self.prefix: list[Index] = [0] if shape.lead else []
        self.at = [*[batch for _ in self.prefix], self.row, self.column]
        self.columns, self.depth = k.inner(shape.columns), k.inner(shape.depth)
        self.rows = k.covered(self.row, cut.rows, k.inner(shape.rows))
        self.vectors = cut.width // isa.lanes
        one = isinstance(self.depth, int) and self.depth <= cut.block
        self.parts = bool(cut.block) and not one
        self.widened: WidenedB | None = None
        self.digits: dict[int, Digits] = {}  # split rows, by the number of digits
        self.b, used = self.second()
        self.stores = Stores(k, epilogue, k.inputs[1 + used :])

    def second(self) -> tuple[SourceOfB, int]:
        """Return the reader of B, and the number of its inputs."""
        k, shape, cut, isa = self.k, self.shape, self.cut, self.isa
        if shape.bits is not None:
            used = 2 if shape.bits.zeros is None else 3
            tensors = k.inputs[1 : 1 + used]
            if counts := _counts(shape, isa):
                apart = k.inputs[1 + used : 1 + used + TENSORS]
                self.digits = {count: Digits(count, *apart) for count in counts}
                used += TENSORS
            used += shape.split
            self.widened = WidenedB(k, isa, shape.bits, cut.width, cut.block, tensors)
            return self.widened, used
        if shape.b is None:
            assert isinstance(self.depth, int)
            layout = panels_of(isa, shape.dtype, cut.width, self.depth)
            return ConstantB(k, layout, k.inputs[1]), 1
        return ComputedB(
            k, isa, shape.dtype, cut.width, cut.block, k.inputs[1], shape.b, self.lead, self.columns
        ), 1

    def build(self) -> list[ResultTile]:
        k, cut, stored = self.k, self.cut, self.stores.epilogue.stored
        wide = k.covered(self.column, cut.panels * cut.width, self.columns)
        panels = k.div(k.add(wide, cut.width - 1), cut.width)
        sizes = [*[1 for _ in self.prefix], self.rows, wide]
        carried = [k.empty(dims, d) for dims, d in self.b.scratch]
        carried += self.split(0).scratch if self.shape.split else []
        carried += [k.empty((cut.rows, cut.width), self.shape.sums)] if self.parts else []
        carried += [k.empty(sizes, d) for d in stored]

        def each(panel: Callable[[Index, Tiles], Tiles]) -> Tiles:
            return k.each(0, panels, 1, carried, panel)

        def some(rows: Index, most: int, digits: int) -> Tiles:
            return each(lambda p, c: walk(
                k, rows, most, c, lambda r, high, t: self.few_rows(p, r, high, digits, t)
            ))  # fmt: skip

        def many() -> Tiles:
            if digits := self.shape.many_digits:
                return each(lambda p, c: self.many_rows(p, digits, c))
            return each(self.split_panel if self.shape.split else self.panel)

        apart = self.shape.split or self.shape.many_digits
        fixed = isinstance(self.shape.rows, int)
        if self.widened is None or (fixed and (cut.block or apart)):
            made = many()
        elif isinstance(self.rows, int):
            made = some(self.rows, self.rows, FEW)
        else:
            types = [t.type for t in carried]
            at_once, few_at_most = (f(self.shape, self.isa) for f in (_at_once, _few_at_most))
            # 0 rows is not few, nor are the last rows of many
            own = k.inner(self.shape.rows) if apart else self.rows
            is_few = k.is_below(k.sub(own, 1), few_at_most)
            made = k.when(is_few, lambda: some(self.rows, at_once, FEW), many, types)
        return [ResultTile(t, self.at, sizes) for t in made[-len(stored) :]]

    def part_of(self, p: Index, *, masked: bool) -> Part:
        """Return the part of B of a panel."""
        k, width = self.k, self.cut.width
        column = k.add(self.column, k.mul(p, width))
        return Part(k.add(k.div(self.column, width), p), column, masked, 0, self.depth)

    def panel(self, p: Index, carried: Tiles) -> Tiles:
        """Build all rows of one panel; with dynamic columns the last panel may be partial."""
        k, width = self.k, self.cut.width
        if isinstance(self.columns, int):
            return self.rows_of(p, carried, masked=self.columns % width != 0)
        end = k.add(self.column, k.mul(p, width), width)
        return k.when(
            k.is_less(self.columns, end),
            lambda: self.rows_of(p, carried, masked=True),
            lambda: self.rows_of(p, carried, masked=False),
            [t.type for t in carried],
        )

    def rows_of(self, p: Index, carried: Tiles, *, masked: bool) -> Tiles:
        """Build the tiles of a panel, for one part of the depth after the other."""
        k, cut, whole = self.k, self.cut, self.part_of(p, masked=masked)
        n = len(self.b.scratch)

        def some(part: Part, carried: Tiles) -> Tiles:
            panel = self.b.panel(part, carried[:n])
            tiles = walk(
                k, self.rows, cut.tile, carried[n:],
                lambda r, high, c: self.tile(panel, part, p, r, high, c),
            )  # fmt: skip
            return [*([panel.source] if n else []), *tiles]

        def part(start: Index, carried: Tiles) -> Tiles:
            count = k.min(cut.block, k.sub(self.depth, start))
            return some(replace(whole, start=start, count=count), carried)

        # at least one iteration, which stores zero sums
        end = k.max(self.depth, 1)
        return k.loop(0, end, cut.block, carried, part) if self.parts else some(whole, carried)

    def split(self, p: Index) -> SplitProduct:
        """Multiply all rows by a panel in tile registers."""
        assert self.widened is not None
        assert isinstance(self.depth, int)
        assert isinstance(self.columns, int)
        k, used = self.k, len(self.widened.tensors) + TENSORS * len(self.digits)
        spots = self.spots(self.part_of(p, masked=self.columns % self.cut.width != 0), p, 0)
        return SplitProduct(
            k, self.isa, self.widened.widening, k.inputs[1 + used], self.row,
            parts_of(k.inputs[0]), self.depth, self.vectors, self.cut.rows,
lambda r, sums, c: self.stores.stored(sums, spots(r), c),
        )  # fmt: skip

    def split_panel(self, p: Index, carried: Tiles) -> Tiles:
        """Build all rows of one panel in tile registers."""
        number = self.k.add(self.k.div(self.column, self.cut.width), p)
        return self.split(p).panel(number, self.rows, carried)

    def many_rows(self, p: Index, digits: int, carried: Tiles) -> Tiles:
        """Build all rows of one panel, which were split into digits.

        The last tile of a dynamic number of rows overlaps the one before it, with equal results.
        """
        k, high = self.k, _IN_MANY[digits]

        def tile(r: Index, high: int, tiles: Tiles) -> Tiles:
            return self.few_rows(p, r, high, digits, tiles)

        if isinstance(self.rows, int):
            return walk(k, self.rows, high, carried, tile)
        types = [t.type for t in carried]

        def tiles(high: int) -> Tiles:
            last = k.sub(self.rows, high)
            return k.loop(
                0, self.rows, high, carried, lambda r, c: tile(k.min(r, last), high, c)
            )  # fmt: skip

        def more() -> Tiles:
            taller = _TALL.get(digits)
            if taller is None:
                return tiles(high)
            few = k.is_less(self.rows, _MOST_FEW + 1)
            covered = [k.mul(k.div(k.add(self.rows, n - 1), n), n) for n in (high, taller)]
            fits = arith.AndIOp(few, k.is_less(covered[1], k.add(covered[0], 1))).result
            return k.when(fits, lambda: tiles(taller), lambda: tiles(high), types)

        return k.when(
            k.is_less(self.rows, high),
            lambda: k.loop(0, self.rows, 1, carried, lambda r, c: tile(r, 1, c)),
            more,
            types,
        )

    def few_rows(self, p: Index, r: Index, high: int, digits: int, carried: Tiles) -> Tiles:
        """Build `high` rows from `r` on, for a panel of few bits that is widened in registers.

        digits: number of digits of the rows, where they were split.
        """
        assert self.widened is not None
        assert isinstance(self.columns, int)
        part = self.part_of(p, masked=self.columns % self.cut.width != 0)
        n = len(carried) - len(self.stores.epilogue.stored)
        sums = self.widened.sums(self.reader(part, r, high), part, self.digits.get(digits))
        made = self.stores.rows(sums, high, self.spots(part, p, r), carried[n:])
        return [*carried[:n], *made]

    def reader(self, part: Part, r: Index, high: int) -> Rows:
        rows = [self.k.add(self.row, r, i) for i in range(high)]
        unit = unit_of(self.isa, self.shape.dtype)
        return Rows(
            self.k, self.k.inputs[0], self.shape.a, self.lead, rows, part.start, part.count, unit,
            is_float=self.shape.dtype is dtypes.FLOAT,
        )  # fmt: skip

    def spots(self, part: Part, p: Index, r: Index) -> Callable[[Index], list[Spot]]:
        """Return the spots of a row, by its number from `r` on."""
        k, lanes, left = self.k, self.isa.lanes, self.k.mul(p, self.cut.width)

        def row(i: Index) -> list[Spot]:
            return [
                Spot(
                    [*self.lead, k.add(self.row, r, i), k.add(part.column, j * lanes)],
                    [*self.prefix, k.add(r, i), k.add(left, j * lanes)],
                    part.masked,
                )
                for j in range(self.vectors)
            ]

        return row

    def tile(
        self, panel: Panel, part: Part, p: Index, r: Index, high: int, tiles: Tiles
    ) -> Tiles:  # fmt: skip
        """Build `high` rows from `r` on: sums, and their epilogue."""
        k, lanes = self.k, self.isa.lanes
        reader, spots = self.reader(part, r, high), self.spots(part, p, r)
        zero = [k.splat(0, lanes, self.shape.sums)] * (high * self.vectors)

        def make(sums: Tiles) -> Tiles:
            return multiplied(k, panel, reader, sums)

        if not self.parts:
            return self.stores.rows(make(zero), high, spots, tiles)
        kept = [((k.add(r, i), j * lanes), False) for i in range(high) for j in range(self.vectors)]
        return Parts(part.start, self.cut.block, self.depth).over(
            k, zero, kept, tiles, make,
            lambda sums, c: [c[0], *self.stores.rows(sums, high, spots, c[1:])],
        )  # fmt: skip
