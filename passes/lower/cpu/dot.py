"""Matrix products as vector loops: packed weights, any number of rows, the epilogue on the sums.

The columns are cut into panels of some registers. A work-group computes some rows of some panels:
tiles of a few rows by one panel accumulate in registers over the whole depth, and what follows the
product is computed on them before they are stored. It reads its panels one after the other, each
for all of its rows, so that weights come from memory once and from the second cache after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lower.cpu.isa import Isa
from mgx_mlir.passes.lower.cpu.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)

# emit(k, tensors, sums, at, reads, masked=...): the vectors of every result at an index of it
Emit = Callable[..., list[ir.Value]]
Tiles = list[ir.Value]

GROUPS = 16  # work-groups that a product is cut into where it can be: 2 to 8 workers share them
GROUP_WORK = 1 << 18  # multiply-adds, or weights with few rows, that are worth a work-group
ROW_BYTES = 2 << 20  # of the rows of a work-group, which it reads again for each panel
# what a tile reaches of the peak, by its registers along the columns
REACHED = {1: 0.85, 2: 0.97}


@dataclass(frozen=True)
class DotPlan:
    """How a product is cut: panels of `width` columns, tiles of `tile` rows by a panel; `panels`
    and `rows` of a work-group."""

    width: int
    tile: int
    panels: int
    rows: int


def plan(rows: Index, depth: int, columns: int, isa: Isa) -> DotPlan:
    """Return the cut of a product; `rows` are a number or an index that only the run knows."""
    high = rows if isinstance(rows, int) else None
    tile, registers = _tile(high, columns, isa)
    width = registers * isa.lanes
    count = -(-columns // width)
    work = depth * width * (high or tile)  # multiply-adds of a panel
    panels = max(1, -(-count // GROUPS), min(count, GROUP_WORK // work))
    most = max(tile, ROW_BYTES // (4 * depth) // tile * tile)
    groups = -(-count // panels)
    # with few columns there are more groups, of fewer rows
    least = max(tile, -(-GROUP_WORK // (depth * width * panels)))
    if high is None:
        few = -(-4 * least // tile) * tile
        return DotPlan(width, tile, panels, most if groups >= GROUPS else min(most, few))
    parts = -(-high // most)
    if groups < GROUPS:
        parts = max(parts, min(GROUPS // groups, high // least))
    share = -(-high // parts)
    return DotPlan(width, tile, panels, high if parts == 1 else -(-share // tile) * tile)


def _tile(rows: int | None, columns: int, isa: Isa) -> tuple[int, int]:
    """Return the rows and registers of a tile: the fastest with the least columns of nothing."""
    tiles = [(1, r) for _, r in isa.dot_tiles] if rows == 1 else list(isa.dot_tiles)

    def cost(tile: tuple[int, int]) -> float:
        width = tile[1] * isa.lanes
        return -(-columns // width) * width / REACHED.get(tile[1], 1.0)

    return min(tiles, key=cost)


def pack(weights: np.ndarray, width: int) -> np.ndarray:
    """Weights [K, N] in the order in which they are read, [panel, K, width], filled up with 0."""
    depth, columns = weights.shape
    count = -(-columns // width)
    padded = np.zeros((depth, count * width), weights.dtype)
    padded[:, :columns] = weights
    return np.ascontiguousarray(padded.reshape(depth, count, width).transpose(1, 0, 2))


def product(
    cut: DotPlan,
    isa: Isa,
    x: ir.Value,
    packed: ir.Value,
    extents: tuple[Index, int],
    others: Sequence[ir.Value],
    results: Sequence[DType],
    emit: Emit,
    captured: Sequence[Index] = (),
) -> list[ir.Value]:
    """Make the dispatch: results of rows by columns.

    x: [rows, K]. packed: of `pack`. extents: rows and columns. others: what `emit` reads.
    captured: further extents that it asks for.
    """

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        return _Body(k, cut, isa, extents, emit).build(results)

    count, _, width = ir.RankedTensorType(packed.type).shape
    assert width == cut.width, f"panels of {width} columns, expected {cut.width}"
    return dispatch(
        [x, packed, *others],
        [(extents, d) for d in results],
        # the groups that read the same weights run after each other
        [(count, cut.panels), (extents[0], cut.rows)],
        body,
        captured,
    )


class _Body:
    """The loops of one work-group."""

    def __init__(
        self, k: WorkgroupBuilder, cut: DotPlan, isa: Isa, extents: tuple[Index, int], emit: Emit
    ) -> None:
        self.k, self.cut, self.lanes, self.emit = k, cut, isa.lanes, emit
        self.x, self.w, *self.others = k.inputs
        self.panel, self.row = k.at
        self.count, self.depth = (ir.RankedTensorType(self.w.type).shape[i] for i in (0, 1))
        self.columns = extents[1]
        self.masked = bool(self.columns % cut.width)
        high = k.inner(extents[0])
        whole = isinstance(high, int) and high % cut.rows == 0
        self.rows: Index = cut.rows if whole else k.min(cut.rows, k.sub(high, self.row))
        self.vectors = cut.width // isa.lanes

    def build(self, results: Sequence[DType]) -> list[ResultTile]:
        k, cut = self.k, self.cut
        panels: Index = cut.panels
        if self.count % cut.panels:
            panels = k.min(cut.panels, k.sub(self.count, self.panel))
        first = k.mul(self.panel, cut.width)
        wide = k.mul(panels, cut.width)
        if self.masked:
            wide = k.min(wide, k.sub(self.columns, first))
        sizes = (self.rows, wide)
        tiles = [k.empty(sizes, d) for d in results]
        if panels == 1:
            tiles = self.panel_rows(0, tiles)
        else:
            tiles = k.loop(0, panels, 1, tiles, lambda p, c: self.panel_rows(p, c))
        return [ResultTile(t, (self.row, first), sizes) for t in tiles]

    def panel_rows(self, p: Index, tiles: Tiles) -> Tiles:
        """All rows of the work-group of one panel: tiles, and the rest in smaller ones."""
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

    def tile(self, p: Index, r: Index, high: int, tiles: Tiles) -> Tiles:
        """`high` rows from `r` on of panel `p`: sums, and what follows them."""
        k, lanes = self.k, self.lanes
        panel, first = k.add(self.panel, p), k.add(self.row, r)
        sums = self.sums(panel, first, high)
        out = list(tiles)
        reads: dict[object, ir.Value] = {}
        base, left = k.mul(panel, self.cut.width), k.mul(p, self.cut.width)
        for i in range(high):
            row = k.add(first, i)
            for j in range(self.vectors):
                at = [row, k.add(base, j * lanes)]
                total = sums[i * self.vectors + j]
                found = self.emit(k, self.others, total, at, reads, masked=self.masked)
                where = [k.add(r, i), k.add(left, j * lanes)]
                out = [
                    k.write(v, t, where, masked=self.masked)
                    for v, t in zip(found, out, strict=True)
                ]
        return out

    def sums(self, panel: Index, row: Index, high: int) -> list[ir.Value]:
        """Return the accumulators of a tile after the whole depth."""
        k, lanes = self.k, self.lanes
        rows = [k.add(row, i) for i in range(high)]

        def step(d: Index, sums: list[ir.Value]) -> list[ir.Value]:
            weights = [k.read(self.w, [panel, d, j * lanes], lanes) for j in range(self.vectors)]
            out = []
            for i, at in enumerate(rows):
                value = k.broadcast(k.element(self.x, [at, d]), lanes)
                for j, w in enumerate(weights):
                    out.append(k.fma(value, w, sums[i * self.vectors + j]))
            return out

        return k.loop(0, self.depth, 1, [k.splat(0.0, lanes)] * (high * self.vectors), step)
