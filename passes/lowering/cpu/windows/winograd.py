"""3x3 convolutions of stride 1 as Winograd's F(2x2, 3x3): 16 multiplications where the direct form
has 36.

Two dispatches. The first transforms the image's tiles of 4x4 pixels, which overlap by 2, to 16
matrices [tiles, channels]. The second multiplies them by the transformed weights, some tiles at a
time in scratch, and transforms the sums back to 2x2 pixels. Both transforms only add and
subtract, yet the sums round differently: an option of fast math (docs/kernels.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.filling import Packing
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, Spot, Stores
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul.computed import Rows
from mgx_mlir.passes.lowering.cpu.matmul.instructions import products
from mgx_mlir.passes.lowering.cpu.matmul.panel import Panel, multiplied
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape, Extents
from mgx_mlir.passes.lowering.index_builder import IndexBuilder

POINTS = 16  # points of a tile of 4x4
MIN_CHANNELS = 64  # fewer do not pay for the transforms
MIN_TILES = 24  # tiles of an image; fewer do not pay for reading 16/9 of the weights
WIDTH = 32  # output channels at a time, at most
GROUPS = 8  # workgroups where possible
DYNAMIC_ROWS = 8  # rows of tiles of a workgroup, where their number is dynamic


@dataclass(frozen=True)
class WinogradPlan:
    """The tiling of the matmuls.

    A workgroup has `rows` rows of tiles and `panels` of `width` channels; `tiles` at a time stand
    in the scratch, `step` of them accumulate in registers.
    """

    rows: int
    panels: int
    width: int
    step: int
    tiles: int


def plan(shape: ConvShape, isa: Isa) -> WinogradPlan | None:
    """Return the plan of a convolution, None where the direct form is better or the only one."""
    if (shape.kernel, shape.stride, shape.dilation) != ((3, 3), (1, 1), (1, 1)):
        return None
    if shape.planar:
        return None
    if shape.inputs < MIN_CHANNELS or shape.inputs % isa.lanes or shape.outputs < MIN_CHANNELS:
        return None
    widths = {
        isa.lanes * registers: most
        for most, registers in isa.tiles
        if isa.lanes * registers <= WIDTH and not shape.outputs % (isa.lanes * registers)
    }
    if not widths:
        return None
    width = max(widths)
    panels = shape.outputs // width
    most = widths[width]
    room = SCRATCH_BYTES // 4 // (POINTS * width)
    if DYN in (*shape.size, *shape.counts):
        return WinogradPlan(DYNAMIC_ROWS, 1, width, most, room // most * most)
    high, wide = _tiles(shape.counts)
    if high * wide < MIN_TILES:
        return None
    parts = -(-GROUPS // (panels * max(1, shape.batch)))
    rows = -(-high // min(parts, high))
    # fewest wasted sums past the last tile
    step = min((most, most - 1), key=lambda n: -(rows * wide) % n)
    tiles = room // step * step
    together = max(1, panels * max(1, shape.batch) * -(-high // rows) // GROUPS)
    each = next(n for n in range(min(together, panels), 0, -1) if panels % n == 0)
    return WinogradPlan(rows, each, width, step, tiles)


def _tiles(counts: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of tiles of an image."""
    return -(-counts[0] // 2), -(-counts[1] // 2)


def _open_tiles(i: IndexBuilder, counts: Sequence[Index]) -> list[Index]:
    """Return the rows and columns of tiles of an image, which may be dynamic."""
    return [i.div(i.add(n, 1), 2) for n in counts]


def packing(weights: np.ndarray, plan: WinogradPlan) -> Packing:
    """Weights [3, 3, Ci, Co] transformed, in the order they are read: [panel, point, Ci, width]."""
    ci, co = weights.shape[2:]
    panels = co // plan.width

    def fill(found: np.ndarray) -> None:
        g = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
        u = np.einsum("ia,abcd,jb->ijcd", g, weights.astype(np.float64, order="C"), g)
        found[...] = u.reshape(POINTS, ci, panels, plan.width).transpose(2, 0, 1, 3)

    return Packing((panels, POINTS, ci, plan.width), np.dtype(np.float32), fill)


def convolution(
    shape: ConvShape,
    cut: WinogradPlan,
    isa: Isa,
    x: ir.Value,
    packed: ir.Value,
    epilogue: Epilogue,
    extents: Extents | None = None,
) -> list[ir.Value]:
    """Make both dispatches; the arguments are those of the direct form."""
    extents = extents or Extents.of(shape)
    batch, i = extents.batch, IndexBuilder()
    high, wide = _open_tiles(i, extents.counts)
    # the last sums may read past the last tile
    count = i.add(i.product([batch, high, wide]), cut.step)
    known = [*extents.size, *extents.counts]
    (tiles,) = dispatch(
        [x],
        [((POINTS, count, shape.inputs), dtypes.FLOAT)],
        [(batch, 1), (high, 1)],
        lambda k: _transformed(k, shape, extents, isa),
        known,
    )
    return dispatch(
        [tiles, packed, *epilogue.inputs],
        [((batch, *extents.counts, shape.outputs), d) for d in epilogue.stored],
        # groups that read the same tiles run after each other, as tiles of many images are large
        [(batch, 1), (high, cut.rows), (shape.outputs // cut.width, cut.panels)],
        lambda k: _Matmuls(k, shape, extents, cut, isa, epilogue).build(),
        known,
    )


def _transformed(
    k: WorkgroupBuilder, shape: ConvShape, extents: Extents, isa: Isa
) -> list[ResultTile]:
    """One row of tiles of an image: B'dB of each 4x4 pixels d, channel by channel."""
    (image, row), (x,) = k.at, k.inputs
    high, wide = _open_tiles(k, list(map(k.inner, extents.counts)))
    size_y, size_x = map(k.inner, extents.size)
    channels, lanes = shape.inputs, isa.lanes
    top = k.sub(k.mul(row, 2), shape.low[0])

    def tile(t: Index, carried: list[ir.Value]) -> list[ir.Value]:
        left = k.sub(k.mul(t, 2), shape.low[1])
        ys, xs = ([k.add(start, n) for n in range(4)] for start in (top, left))
        inside = [
            arith.AndIOp(k.is_below(y, size_y), k.is_below(x, size_x)).result
            for y in ys
            for x in xs
        ]

        def along(checked: bool) -> Callable[[], list[ir.Value]]:
            def pixel(y: Index, x: Index) -> Index:
                if checked:
                    y, x = (
                        k.min(k.max(at, 0), k.sub(size, 1))
                        for at, size in ((y, size_y), (x, size_x))
                    )
                return k.mul(k.add(k.mul(k.add(k.mul(image, size_y), y), size_x), x), channels)

            def vectors(c: Index, inner: list[ir.Value]) -> list[ir.Value]:
                d = [k.read(x, [k.add(at, c)], lanes) for at in starts]
                if checked:
                    zero = k.splat(0.0, lanes)
                    d = [
                        arith.SelectOp(ok, v, zero).result for ok, v in zip(inside, d, strict=True)
                    ]
                columns = [_input_points([d[4 * i + j] for i in range(4)]) for j in range(4)]
                into = inner[0]
                for i in range(4):
                    for j, v in enumerate(_input_points([columns[j][i] for j in range(4)])):
                        into = k.write(v, into, [4 * i + j, t, c])
                return [into]

            starts: list[Index] = []

            def build() -> list[ir.Value]:
                starts[:] = [pixel(y, x) for y in ys for x in xs]
                return k.loop(0, channels, lanes, carried, vectors)

            return build

        whole = arith.AndIOp(
            arith.AndIOp(inside[0], inside[3]).result, arith.AndIOp(inside[12], inside[15]).result
        ).result
        return k.when(whole, along(False), along(True), [carried[0].type])

    made = k.loop(0, wide, 1, [k.empty((POINTS, wide, channels))], tile)
    first = k.mul(k.add(k.mul(image, high), row), wide)
    return [ResultTile(made[0], (0, first, 0), (POINTS, wide, channels))]


def _input_points(z: Sequence[ir.Value]) -> list[ir.Value]:
    """Return B' z of the input's transform."""
    return [_sub(z[0], z[2]), _add(z[1], z[2]), _sub(z[2], z[1]), _sub(z[1], z[3])]


def _output_points(z: Sequence[ir.Value]) -> list[ir.Value]:
    """Return A' z of the result's transform."""
    return [_add(_add(z[0], z[1]), z[2]), _sub(_sub(z[1], z[2]), z[3])]


def _add(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.AddFOp(a, b).result


def _sub(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.SubFOp(a, b).result


class _Matmuls:
    """The matmuls of one workgroup, and their transform back."""

    def __init__(
        self, k: WorkgroupBuilder, shape: ConvShape, extents: Extents, cut: WinogradPlan,
        isa: Isa, epilogue: Epilogue,
    ) -> None:  # fmt: skip
        self.k, self.shape, self.cut, self.isa = k, shape, cut, isa
        self.tiles, self.weights, *others = k.inputs
        self.stores = Stores(k, epilogue, others)
        self.image, self.row, self.panel = k.at
        self.counts = list(map(k.inner, extents.counts))
        self.high, self.wide = _open_tiles(k, self.counts)
        self.registers = cut.width // isa.lanes
        even = isinstance(self.high, int) and self.high % cut.rows == 0
        rows: Index = cut.rows if even else k.min(cut.rows, k.sub(self.high, self.row))
        self.count = k.mul(rows, self.wide)
        self.first = k.mul(k.add(k.mul(self.image, self.high), self.row), self.wide)
        self.origin = k.mul(self.row, 2)
        tall = self.counts[0]
        even = isinstance(tall, int) and tall % (2 * cut.rows) == 0
        self.pixels = 2 * cut.rows if even else None

    def build(self) -> list[ResultTile]:
        k, cut, (high, wide) = self.k, self.cut, self.counts
        rows: Index = self.pixels or k.min(2 * cut.rows, k.sub(high, self.origin))
        sizes = (1, rows, wide, cut.panels * cut.width)
        tiles = [k.empty(sizes, d) for d in self.stores.epilogue.stored]
        scratch = k.empty((POINTS, cut.tiles, cut.width))

        def panel(p: Index, carried: list[ir.Value]) -> list[ir.Value]:
            def some(q: Index, carried: list[ir.Value]) -> list[ir.Value]:
                count = k.min(cut.tiles, k.sub(self.count, q))
                sums = self.points(p, q, count, carried[0])
                return [sums, *self.pixels_of(p, q, count, sums, carried[1:])]

            return k.loop(0, self.count, cut.tiles, carried, some)

        made = k.loop(0, cut.panels, 1, [scratch, *tiles], panel)
        at = (self.image, self.origin, 0, k.mul(self.panel, cut.width))
        return [ResultTile(t, at, sizes) for t in made[1:]]

    def points(self, p: Index, q: Index, count: Index, scratch: ir.Value) -> ir.Value:
        """Return the scratch with the 16 matmuls of `count` tiles from `q` on."""
        k, lanes, step = self.k, self.isa.lanes, self.cut.step
        panel, multiply = k.add(self.panel, p), products(k, self.isa, dtypes.FLOAT)

        def point(e: Index, carried: list[ir.Value]) -> list[ir.Value]:
            def some(m: Index, carried: list[ir.Value]) -> list[ir.Value]:
                first = k.add(self.first, q, m)
                rows = [k.add(first, i) for i in range(step)]
                reader = Rows(
                    k, self.tiles, (0, 1, 2), [e], rows, 0, self.shape.inputs, 1, is_float=True
                )
                weights = Panel(k, self.weights, (panel, e), lanes, self.registers, multiply)
                zero = [k.splat(0.0, lanes)] * (step * self.registers)
                sums = multiplied(k, weights, reader, zero)
                into = carried[0]
                for n, v in enumerate(sums):
                    i, j = divmod(n, self.registers)
                    into = k.write(v, into, [e, k.add(m, i), j * lanes])
                return [into]

            return k.loop(0, count, step, carried, some)

        return k.loop(0, POINTS, 1, [scratch], point)[0]

    def pixels_of(
        self, p: Index, q: Index, count: Index, sums: ir.Value, tiles: list[ir.Value]
    ) -> list[ir.Value]:
        """Return the results with the 2x2 pixels of each tile, after the epilogue."""
        k, lanes = self.k, self.isa.lanes
        channel = k.mul(k.add(self.panel, p), self.cut.width)
        high, wide = self.counts

        def tile(t: Index, carried: list[ir.Value]) -> list[ir.Value]:
            flat = k.add(q, t)
            y, x = (k.mul(n, 2) for n in (k.div(flat, self.wide), k.rem(flat, self.wide)))
            made: list[list[ir.Value]] = [[] for _ in range(4)]
            for j in range(self.registers):
                m = [k.read(sums, [e, t, j * lanes], lanes) for e in range(POINTS)]
                columns = [_output_points([m[4 * i + c] for i in range(4)]) for c in range(4)]
                for i in range(2):
                    for c, v in enumerate(_output_points([columns[c][i] for c in range(4)])):
                        made[2 * i + c].append(v)
            for n, vectors in enumerate(made):
                at_y, at_x = k.add(y, n // 2), k.add(x, n % 2)

                def stored(
                    into: list[ir.Value] = carried, vectors: list[ir.Value] = vectors,
                    at_y: Index = at_y, at_x: Index = at_x,
                ) -> list[ir.Value]:  # fmt: skip
                    spots = [
                        Spot(
                            [self.image, k.add(self.origin, at_y), at_x, k.add(channel, j)],
                            [0, at_y, at_x, k.add(k.mul(p, self.cut.width), j)],
                            masked=False,
                        )
                        for j in range(0, self.cut.width, lanes)
                    ]
                    return self.stores.stored(vectors, spots, into)

                inner: list[ir.Value] = []  # an odd extent ends inside of a tile
                if n // 2 and not _is_even(high):
                    inner.append(k.is_less(k.add(self.origin, at_y), high))
                if n % 2 and not _is_even(wide):
                    inner.append(k.is_less(at_x, wide))
                if inner:
                    inside = inner[0]
                    for other in inner[1:]:
                        inside = arith.AndIOp(inside, other).result
                    before = carried
                    carried = k.when(
                        inside, stored, lambda before=before: before, [t.type for t in before]
                    )
                else:
                    carried = stored()
            return carried

        return k.loop(0, count, 1, tiles, tile)


def _is_even(n: Index) -> bool:
    """Return whether an extent is known to be even."""
    return isinstance(n, int) and n % 2 == 0
