"""The loops of one workgroup of a convolution: the copy of its input, tiles of sums, stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, Spot, Stores
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, ResultTile, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.byte_panels import BytePanels
from mgx_mlir.passes.lowering.cpu.matmul.panel import Panel, Panels, Parts, Tiles, multiplied, walk
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvPlan, ConvShape, Extents
from mgx_mlir.passes.lowering.cpu.windows.image import Image


class ConvolutionLoops:
    """Builds the body.

    extents: inside of the body. at: the panel, image, row and column of the result where it starts.
    """

    def __init__(
        self, k: WorkgroupBuilder, shape: ConvShape, cut: ConvPlan, isa: Isa, layout: Panels,
        epilogue: Epilogue, extents: Extents, at: Sequence[Index],
    ) -> None:  # fmt: skip
        self.k, self.shape, self.cut, self.isa, self.layout = k, shape, cut, isa, layout
        self.stores = Stores(k, epilogue, k.inputs[2:])
        self.panel, image, row, column = at
        self.blocks = -(-shape.inputs // cut.block)
        channel = k.mul(self.panel, cut.width)
        high, wide = extents.counts
        self.rows, self.columns = (
            k.covered(row, cut.rows, high),
            k.covered(column, cut.columns, wide),
        )
        self.channels = k.covered(channel, cut.panels * cut.width, shape.outputs)
        self.at = (image, row, column, channel)
        pitch: Index = shape.span(1, cut.columns) * cut.block
        shift = 0
        if shape.in_place:
            pitch = k.mul(extents.size[1], shape.inputs)
        elif isinstance(layout, BytePanels):
            shift = layout.shift  # the copy has the instruction's signedness
        self.image = Image(
            k, shape, cut, isa, extents, k.inputs[0], image, row, column, self.rows, self.columns,
            pitch, shift,
        )  # fmt: skip

    def build(self) -> list[ResultTile]:
        k = self.k
        sizes = (1, self.rows, self.columns, self.channels)
        scratch = self.image.scratch
        n = len(scratch)

        def block(b: Index, carried: Tiles) -> Tiles:
            source = [self.image.copied(carried[0], b)] if n else []
            return [*source, *self.panels([*source, k.inputs[0]][0], b, carried[n:])]

        tiles = [k.empty(sizes, d) for d in self.stores.epilogue.stored]
        carried = k.each(0, self.blocks, 1, [*scratch, *tiles], block)
        return [ResultTile(t, self.at, sizes) for t in carried[n:]]

    def panels(self, source: ir.Value, b: Index, tiles: Tiles) -> Tiles:
        """Build the tiles of all panels: in rows of pixels, or across rows."""
        k, cut, (rows, wide) = self.k, self.cut, (self.rows, self.columns)

        def panel(p: Index, carried: Tiles) -> Tiles:
            def across(n: Index, size: int, c: Tiles) -> Tiles:
                def at(i: Index) -> tuple[Index, Index]:
                    m = k.add(n, i)
                    return k.div(m, wide), k.rem(m, wide)

                return self.tile(source, b, p, size, at, c)

            def row(r: Index, c: Tiles) -> Tiles:
                return walk(
                    k, wide, cut.pixels, c,
                    lambda q, size, c: self.tile(
                        source, b, p, size, lambda i: (r, k.add(q, i)), c
                    ),
                    even=False,
                )  # fmt: skip

            if cut.across:
                return walk(k, k.mul(rows, wide), cut.pixels, carried, across)
            return k.loop(0, rows, 1, carried, row)

        return k.each(0, cut.panels, 1, tiles, panel)

    def weights(self, p: Index) -> Panel:
        """Return a panel of the workgroup."""
        k, number = self.k, self.k.add(self.panel, p)
        if isinstance(self.layout, BytePanels):
            shifted = bool(self.image.shift)
            return self.layout.panel(k, k.inputs[1], number, shifted=shifted)
        return self.layout.panel(k, k.inputs[1], number)

    def tile(
        self, source: ir.Value, b: Index, p: Index, size: int,
        pixel: Callable[[Index], tuple[Index, Index]], tiles: Tiles,
    ) -> Tiles:  # fmt: skip
        """Build some pixels (row, column) of panel `p`: sums, and their epilogue."""
        k, s, lanes = self.k, self.shape, self.isa.lanes
        panel, window = self.weights(p), self.image.window(source, list(map(pixel, range(size))))
        image, row, column, channel = self.at
        left = k.mul(p, self.cut.width)
        columns = [k.add(left, j) for j in range(0, self.cut.width, lanes)]

        def spots(i: Index) -> list[Spot]:
            r, q = pixel(i)
            return [
                Spot(
                    [image, k.add(row, r), k.add(column, q), k.add(channel, c)],
                    [0, r, q, c],
                    s.outputs % lanes != 0 and c is columns[-1],
                )
                for c in columns
            ]

        sums = dtypes.INT32 if s.is_bytes else dtypes.FLOAT
        zero = [k.splat(0, lanes, sums)] * (size * len(columns))

        def make(sums: Tiles) -> Tiles:
            return multiplied(k, panel, window, sums, b)

        def finish(sums: Tiles, tiles: Tiles) -> Tiles:
            return self.stores.rows(sums, size, spots, tiles)

        if self.blocks == 1:
            return finish(make(zero), tiles)
        kept = [(spot.local, spot.masked) for i in range(size) for spot in spots(i)]
        return Parts(b, 1, self.blocks).over(k, zero, kept, tiles, make, finish)
