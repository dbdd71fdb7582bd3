"""The loops of one work-group of a convolution: the copy of its input, tiles of sums, stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, ResultTile, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvExtents, ConvPlan, ConvShape
from mgx_mlir.passes.lowering.scalar import TypedScalar

# emit(k, tensors, sums, at, reads, masked=): the vectors of every result at an index of the result
Emit = Callable[..., list[ir.Value]]


@dataclass(frozen=True)
class Strip:
    """Columns of the padded image: `left` of the border, `used` from column `begin` of the image
    on, `right` of the border."""

    left: Index
    begin: Index
    used: Index
    right: Index


class ConvolutionLoops:
    """Builds the body. at: the panel, image, row and column of the result where it starts.

    stored: the type of the scratch.
    """

    stored = dtypes.FLOAT

    def __init__(
        self,
        k: WorkgroupBuilder,
        shape: ConvShape,
        cut: ConvPlan,
        isa: Isa,
        emit: Emit,
        extents: ConvExtents,
        at: Sequence[Index],
    ) -> None:
        self.k, self.shape, self.cut, self.isa, self.emit = k, shape, cut, isa, emit
        self.extents = extents
        self.x, self.w, *self.others = k.inputs
        self.panel, self.image, self.row, self.column = at
        self.blocks = -(-shape.inputs // cut.block)
        self.vectors = cut.width // isa.lanes
        self.ragged = shape.outputs % isa.lanes != 0
        high, wide = extents.counts
        self.rows = self.part(self.row, cut.rows, high)
        self.columns = self.part(self.column, cut.columns, wide)
        self.offsets: list[Index] = []  # of a tile's pixels from the first, in elements
        self.first_channel = k.mul(self.panel, cut.width)
        self.channels = self.part(self.first_channel, cut.panels * cut.width, shape.outputs)
        # how far apart, in elements of the scratch or the input, are neighbours
        span = shape.span(1, cut.columns)
        self.line = span if shape.planar else 0
        if shape.planar:
            self.pitch: Index = span * cut.block
            self.step = 1
        elif shape.in_place:
            self.pitch, self.step = k.mul(extents.size[1], shape.inputs), shape.inputs
        else:
            self.pitch, self.step = span * cut.block, cut.block

    def part(self, start: Index, step: int, extent: Index) -> Index:
        """Return how much of an extent a step from `start` on covers."""
        if isinstance(extent, int) and extent % step == 0:
            return step
        return self.k.min(step, self.k.sub(extent, start))

    def build(self, results: Sequence[DType]) -> list[ResultTile]:
        k, cut = self.k, self.cut
        sizes = (1, self.rows, self.columns, self.channels)
        tiles = [k.empty(sizes, d) for d in results]
        scratch = []
        if not self.shape.in_place:
            assert isinstance(self.pitch, int)
            scratch = [k.empty((self.shape.span(0, cut.rows) * self.pitch,), self.stored)]

        def block(b: Index, carried: list[ir.Value]) -> list[ir.Value]:
            if scratch:
                source = self.copied(carried[0], b)
                return [source, *self.panels(source, b, carried[1:])]
            return self.panels(self.x, b, carried)

        carried = self.each(0, self.blocks, 1, [*scratch, *tiles], block)
        at = (self.image, self.row, self.column, self.first_channel)
        return [ResultTile(t, at, sizes) for t in carried[len(scratch) :]]

    # ---- the input's rows --------------------------------------------------------------------

    def copied(self, scratch: ir.Value, b: Index) -> ir.Value:
        """Return the scratch with the part of the padded image that the work-group reads."""
        k, s = self.k, self.shape
        high, wide = self.extents.size
        first = k.sub(k.mul(self.row, s.stride[0]), s.low[0])
        count = k.add(k.mul(k.sub(self.rows, 1), s.stride[0]), s.span(0, 1))
        # of the columns [start, start + span) of the image: its border, and what is inside
        start = k.sub(k.mul(self.column, s.stride[1]), s.low[1])
        span = k.add(k.mul(k.sub(self.columns, 1), s.stride[1]), s.span(1, 1))
        left = k.min(span, k.max(0, k.sub(0, start)))
        inside = k.max(0, k.min(wide, k.add(start, span)))
        begin = k.min(inside, k.max(0, start))
        used = k.sub(inside, begin)
        strip = Strip(left, begin, used, k.sub(k.sub(span, left), used))

        def row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
            y, at = k.add(first, r), k.mul(r, self.pitch)
            # one comparison: a row ahead of the image is a huge unsigned number
            return k.when(
                k.is_below(y, high),
                lambda: [self.image_row(carried[0], at, y, b, strip)],
                lambda: [self.zeros(carried[0], at, self.pitch)],
                [scratch.type],
            )

        return k.loop(0, count, 1, [scratch], row)[0]

    def image_row(
        self, into: ir.Value, at: Index, y: Index, b: Index, strip: Strip
    ) -> ir.Value:  # fmt: skip
        """Return the scratch with one row of the image and its border from `at` on."""
        k, s = self.k, self.shape
        high, wide = self.extents.size
        if not s.planar:
            pixel = k.add(k.mul(k.add(k.mul(self.image, high), y), wide), strip.begin)
            source = k.add(k.mul(pixel, s.inputs), k.mul(b, self.cut.block))
            return self.line_of(into, at, source, strip)

        def plane(c: Index, inner: list[ir.Value]) -> list[ir.Value]:
            source = k.add(k.mul(self.image, s.inputs), c)
            source = k.add(k.mul(k.add(k.mul(source, high), y), wide), strip.begin)
            return [self.line_of(inner[0], k.add(at, k.mul(c, self.line)), source, strip)]

        return k.loop(0, self.cut.block, 1, [into], plane)[0]

    def line_of(self, into: ir.Value, at: Index, source: Index, strip: Strip) -> ir.Value:
        """Return the scratch with the border of a line, and what is copied of the image."""
        k, s, block = self.k, self.shape, self.cut.block
        unit = 1 if s.planar else block
        into = self.zeros(into, at, k.mul(strip.left, unit))
        at = k.add(at, k.mul(strip.left, unit))
        if s.planar or block == s.inputs:
            into = self.copy(into, at, source, k.mul(strip.used, unit))
        elif strip.used != 0:

            def pixel(p: Index, c: list[ir.Value]) -> list[ir.Value]:
                to, of = k.add(at, k.mul(p, unit)), k.add(source, k.mul(p, s.inputs))
                return [self.copy(c[0], to, of, min(unit, s.inputs))]

            (into,) = k.loop(0, strip.used, 1, [into], pixel)
        return self.zeros(into, k.add(at, k.mul(strip.used, unit)), k.mul(strip.right, unit))

    def zeros(self, into: ir.Value, at: Index, count: Index) -> ir.Value:
        k = self.k

        def put(i: Index, lanes: int, t: ir.Value) -> ir.Value:
            return k.write(self.border(lanes), t, [k.add(at, i)])

        return self.chunks(into, count, put)

    def border(self, lanes: int) -> ir.Value:
        """Return what is around the image."""
        return self.k.splat(0.0, lanes)

    def copy(self, into: ir.Value, at: Index, source: Index, count: Index) -> ir.Value:
        k = self.k

        def put(i: Index, lanes: int, t: ir.Value) -> ir.Value:
            found = k.read(self.x, [k.add(source, i)], lanes)
            return k.write(self.widened(found, lanes), t, [k.add(at, i)])

        return self.chunks(into, count, put)

    def widened(self, v: ir.Value, lanes: int) -> ir.Value:
        """Return elements of the image as f32."""
        dtype = dtypes.from_mlir(ir.VectorType(v.type).element_type)
        return widen(self.k, TypedScalar(v, dtype), lanes).value

    def chunks(
        self, into: ir.Value, count: Index, put: Callable[[Index, int, ir.Value], ir.Value]
    ) -> ir.Value:
        """`put` at 0, n, 2n .. up to `count`, as vectors of n = four registers, then less."""
        big = 4 * self.isa.lanes
        if not isinstance(count, int):
            at: Index = 0
            for lanes in (big, self.isa.lanes, 1):
                stop = self.k.sub(count, self.k.rem(count, lanes))
                into = self.k.loop(
                    at, stop, lanes, [into], lambda i, c, n=lanes: [put(i, n, c[0])]
                )[0]
                at = stop
            return into
        whole = count // big * big
        if whole > big:
            (into,) = self.k.loop(0, whole, big, [into], lambda i, c: [put(i, big, c[0])])
        elif whole:
            into = put(0, big, into)
        rest, done = count - whole, whole
        lanes = big // 2
        while rest:
            if lanes <= rest:
                into = put(done, lanes, into)
                done, rest = done + lanes, rest - lanes
            else:
                lanes //= 2
        return into

    # ---- tiles -------------------------------------------------------------------------------

    def panels(self, source: ir.Value, b: Index, tiles: list[ir.Value]) -> list[ir.Value]:
        k = self.k

        def panel(p: Index, carried: list[ir.Value]) -> list[ir.Value]:
            if self.cut.across:
                return self.pixels_of_all(source, b, p, carried)
            return k.loop(
                0, self.rows, 1, carried, lambda r, c: self.pixels_of_row(source, b, p, r, c)
            )

        return self.each(0, self.cut.panels, 1, tiles, panel)

    def pixels_of_all(
        self, source: ir.Value, b: Index, p: Index, tiles: list[ir.Value]
    ) -> list[ir.Value]:
        """Build tiles of about one size of all pixels, from row to row."""
        k, (rows, wide) = self.k, (self.rows, self.columns)
        assert isinstance(rows, int)
        assert isinstance(wide, int)
        count = -(-rows * wide // self.cut.pixels)
        long = -(-rows * wide // count)
        middle = (count - (count * long - rows * wide)) * long

        def some(size: int) -> Callable[[Index, list[ir.Value]], list[ir.Value]]:
            def tile(n: Index, carried: list[ir.Value]) -> list[ir.Value]:
                flat = [k.add(n, i) for i in range(size)]
                places = [(k.div(m, wide), k.rem(m, wide)) for m in flat]
                return self.tile(source, b, p, places, carried)

            return tile

        tiles = self.each(0, middle, long, tiles, some(long))
        return self.each(middle, rows * wide, max(1, long - 1), tiles, some(long - 1))

    def pixels_of_row(
        self, source: ir.Value, b: Index, p: Index, r: Index, tiles: list[ir.Value]
    ) -> list[ir.Value]:
        """Build the tiles along a row: as many whole ones as there are, then what is left."""
        k, pixels = self.k, self.cut.pixels

        def tile(q: Index, count: int, carried: list[ir.Value]) -> list[ir.Value]:
            return self.tile(source, b, p, [(r, k.add(q, i)) for i in range(count)], carried)

        def some(count: int) -> Callable[[Index, list[ir.Value]], list[ir.Value]]:
            return lambda q, carried: tile(q, count, carried)

        if isinstance(self.columns, int):
            whole = self.columns // pixels * pixels
            tiles = self.each(0, whole, pixels, tiles, some(pixels))
            if whole < self.columns:
                tiles = tile(whole, self.columns - whole, tiles)
            return tiles
        at: Index = 0
        while pixels:
            stop = k.add(at, k.mul(k.div(k.sub(self.columns, at), pixels), pixels))
            tiles = k.loop(at, stop, pixels, tiles, some(pixels))
            at, pixels = stop, 1 << (pixels - 1).bit_length() >> 1
        return tiles

    def each(
        self,
        start: int,
        stop: int,
        step: int,
        carried: list[ir.Value],
        body: Callable[[Index, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Build a loop, unless it has one round or none."""
        if stop - start <= step:
            return body(start, carried) if stop > start else carried
        return self.k.loop(start, stop, step, carried, body)

    def tile(
        self, source: ir.Value, b: Index, p: Index, places: Sequence[tuple[Index, Index]],
        tiles: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Make some pixels (row, column) of panel `p`: sums, and what follows them."""
        k, s, lanes, pixels = self.k, self.shape, self.isa.lanes, len(places)
        panel = k.add(self.panel, p)
        base = self.start_of(*places[0])
        apart = s.stride[1] * self.step
        self.offsets = [i * apart for i in range(pixels)]
        if self.cut.across and not self.is_line:
            self.offsets = [k.sub(self.start_of(*at), base) for at in places]
        if s.in_place:
            top = k.add(k.mul(self.image, self.extents.size[0]), k.mul(self.row, s.stride[0]))
            left = k.mul(self.column, s.stride[1] * self.step)
            base = k.add(base, k.mul(top, self.pitch), left)
        columns = [k.add(k.mul(p, self.cut.width), j * lanes) for j in range(self.vectors)]
        spots = [
            ([0, r, q, c], self.ragged and j == self.vectors - 1)
            for r, q in places
            for j, c in enumerate(columns)
        ]
        init = zero = self.starts(panel) * pixels
        if self.blocks > 1:
            init = k.when(
                k.is_equal(b, 0),
                lambda: zero,
                lambda: [
                    k.read(tiles[0], at, lanes, masked=0.0 if masked else None)
                    for at, masked in spots
                ],
                [v.type for v in zero],
            )
        sums = self.sums(source, base, panel, b, pixels, init)

        def last() -> list[ir.Value]:
            out, reads = list(tiles), {}
            origin = [self.image, self.row, self.column, self.first_channel]
            for (at, masked), total in zip(spots, sums, strict=True):
                where = [origin[0], *(k.add(o, i) for o, i in zip(origin[1:], at[1:], strict=True))]
                found = self.emit(k, self.others, total, where, reads, masked=masked)
                out = [k.write(v, t, at, masked=masked) for v, t in zip(found, out, strict=True)]
            return out

        if self.blocks == 1:
            return last()

        def kept() -> list[ir.Value]:
            out = tiles[0]
            for (at, masked), total in zip(spots, sums, strict=True):
                out = k.write(total, out, at, masked=masked)
            return [out, *tiles[1:]]

        return k.when(k.is_equal(b, self.blocks - 1), last, kept, [t.type for t in tiles])

    @property
    def is_line(self) -> bool:
        """Whether the pixels that follow a row's last are those of the next row."""
        s = self.shape
        whole = s.kernel == s.stride == (1, 1)
        return whole and s.in_place and s.size[1] == s.counts[1] == self.cut.columns

    def start_of(self, r: Index, q: Index) -> Index:
        """Return where the window of a pixel starts, in elements of the scratch or the image."""
        k, s = self.k, self.shape
        return k.add(k.mul(k.mul(r, s.stride[0]), self.pitch), k.mul(q, s.stride[1] * self.step))

    def starts(self, panel: Index) -> list[ir.Value]:
        """Return what the sums of each register of a panel begin with."""
        return [self.k.splat(0.0, self.isa.lanes)] * self.vectors

    def sums(
        self, source: ir.Value, base: Index, panel: Index, b: Index, pixels: int,
        init: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the accumulators after all taps of a channel block."""
        k, loops = self.k, self.taps()

        def nest(level: int, at: Index, tap: Index, acc: list[ir.Value]) -> list[ir.Value]:
            if level == len(loops):
                return self.products(source, at, [panel, b, tap], pixels, acc)
            count, stride = loops[level]
            inner = int(np.prod([n for n, _ in loops[level + 1 :]]))

            def one(i: Index, acc: list[ir.Value]) -> list[ir.Value]:
                return nest(
                    level + 1, k.add(at, k.mul(i, stride)), k.add(tap, k.mul(i, inner)), acc
                )

            return self.each(0, count, 1, acc, one)

        return nest(0, base, 0, init)

    def products(
        self, source: ir.Value, at: Index, weights: Sequence[Index], pixels: int,
        acc: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the accumulators with the products of one tap. weights: their index."""
        k, lanes = self.k, self.isa.lanes
        columns = [k.read(self.w, [*weights, j * lanes], lanes) for j in range(self.vectors)]
        out: list[ir.Value] = []
        for i in range(pixels):
            value = k.broadcast(k.element(source, [k.add(at, self.offsets[i])]), lanes)
            for j, w in enumerate(columns):
                out.append(k.fma(value, w, acc[i * self.vectors + j]))
        return out

    def taps(self) -> list[tuple[int, Index]]:
        """Return the loops of a window, (rounds, elements apart), as `pack` orders the weights."""
        (kh, kw), (dh, dw) = self.shape.kernel, self.shape.dilation
        block = self.cut.block
        rows = (kh, self.k.mul(dh, self.pitch))
        if self.shape.planar:
            return [rows, (block, self.line), (kw, dw)]
        if dw == 1 or kw == 1:
            return [rows, (kw * block, 1)]
        return [rows, (kw, dw * block), (block, 1)]
