"""Convolutions as vector loops: one dispatch that reads the unpadded input, epilogue included.

A work-group computes some rows and some panels (groups of output channels) of one image. It copies
the rows of the input that it needs, with their zero border, to scratch on its stack, as many
channels at a time as fit there; unpadded ones it reads in place. Tiles of a few pixels by one panel
accumulate in registers, over more than one channel block in the result itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lower.cpu.isa import Isa
from mgx_mlir.passes.lower.cpu.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)

# emit(k, tensors, sums, at, reads): the vectors of every result at an index of the result
Emit = Callable[..., list[ir.Value]]
SCRATCH = SCRATCH_BYTES // 4


@dataclass(frozen=True)
class ConvShape:
    """A dense convolution of images [N, H, W, C]; pairs are (height, width).

    low: padding ahead of the image. counts: the result's height and width. planar: the input is
    [N, C, H, W] all the same.
    """

    batch: int
    size: tuple[int, int]
    inputs: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    low: tuple[int, int]
    counts: tuple[int, int]
    planar: bool = False

    @property
    def reach(self) -> tuple[int, int]:
        """How much of the padded image the windows span."""
        h, w = (
            (n - 1) * s + (k - 1) * d + 1
            for n, s, k, d in zip(self.counts, self.stride, self.kernel, self.dilation, strict=True)
        )
        return h, w

    @property
    def in_place(self) -> bool:
        """No window leaves the image."""
        inside = all(r <= s for r, s in zip(self.reach, self.size, strict=True))
        return not any(self.low) and inside and not self.planar


@dataclass(frozen=True)
class ConvPlan:
    """How a convolution is cut: `rows` and `panels` of a work-group, a panel of `width` channels,
    tiles of `pixels` by a panel, `block` input channels at a time."""

    rows: int
    panels: int
    width: int
    pixels: int
    block: int


def plan(shape: ConvShape, isa: Isa) -> ConvPlan | None:
    """Return the cut of a convolution, None where these loops do not fit it."""
    high, wide = shape.counts
    tile = _tile(shape, isa)
    if tile is None or wide < 4:
        return None
    pixels, width = tile
    block = _block(shape)
    if block is None:
        return None
    rows = high if shape.in_place else _rows(shape, block)
    rows = min(rows, max(1, ROW_PIXELS // wide))
    parts = -(-high // rows)
    rows = -(-high // parts)  # blocks of about one size
    count = shape.outputs // width
    groups = max(1, min(count, GROUPS // (parts * shape.batch)))
    panels = next(n for n in range(-(-count // groups), count + 1) if count % n == 0)
    return ConvPlan(rows, panels, width, pixels, block)


FILLED = 0.75  # of the rows of a tile
ROW_PIXELS = 448  # output pixels of a work-group
QUAD = 4  # channels that are copied at a time, at least
GROUPS = 8  # work-groups that a convolution is cut into where it can be


def _tile(shape: ConvShape, isa: Isa) -> tuple[int, int] | None:
    """Pixels and channels of a tile: the first of the processor's that rows of pixels fill."""
    wide = shape.counts[1]
    fits = [
        (-(-wide // -(-wide // rows)), isa.lanes * columns, rows)
        for rows, columns in isa.tiles
        if not shape.outputs % (isa.lanes * columns)
    ]
    if not fits:
        return None
    filled = (f for f in fits if -(-wide // f[0]) * f[2] * FILLED <= wide)
    pixels, width, _ = next(filled, max(fits, key=lambda f: f[0] * f[1]))
    return pixels, width


def _row_elements(shape: ConvShape, block: int) -> int:
    """Return the scratch of one input row."""
    return shape.reach[1] * block


def _input_rows(shape: ConvShape, rows: int) -> int:
    """Return the rows of the padded image that `rows` of the result read."""
    return (rows - 1) * shape.stride[0] + (shape.kernel[0] - 1) * shape.dilation[0] + 1


def _rows(shape: ConvShape, block: int) -> int:
    """Return the rows of the result whose input fits the scratch."""
    have = SCRATCH // _row_elements(shape, block)
    return min(shape.counts[0], (have - _input_rows(shape, 1)) // shape.stride[0] + 1)


def _block(shape: ConvShape) -> int | None:
    """Return the input channels that are copied at a time: all if the rows at hand then fit."""
    c = shape.inputs
    if shape.in_place:
        return c
    fits = [
        b
        for b in range(c, 0, -1)
        if c % b == 0 and (b == c or not (shape.planar or b % QUAD)) and _rows(shape, b) >= 1
    ]
    wanted = min(shape.counts[0], 4)
    return next((b for b in fits if _rows(shape, b) >= wanted), fits[-1] if fits else None)


def pack(weights: np.ndarray, shape: ConvShape, plan: ConvPlan) -> np.ndarray:
    """Weights [kh, kw, Ci, Co] in the order they are read: [panel, block, tap, width]."""
    kh, kw, ci, co = weights.shape
    w = weights.reshape(kh, kw, ci // plan.block, plan.block, co // plan.width, plan.width)
    order = (4, 2, 0, 3, 1, 5) if shape.planar else (4, 2, 0, 1, 3, 5)
    return np.ascontiguousarray(w.transpose(order)).reshape(
        co // plan.width, ci // plan.block, kh * kw * plan.block, plan.width
    )


def convolution(
    shape: ConvShape,
    cut: ConvPlan,
    isa: Isa,
    x: ir.Value,
    packed: ir.Value,
    others: Sequence[ir.Value],
    results: Sequence[DType],
    emit: Emit,
) -> list[ir.Value]:
    """Make the dispatch.

    x: the input as a vector of all its elements. packed: of `pack`. others: what `emit` reads.
    results: their element types; the first is f32 if there are channel blocks.
    """
    high, wide = shape.counts
    whole = (shape.batch, high, wide, shape.outputs)
    panels = shape.outputs // cut.width

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        return _Body(k, shape, cut, isa, len(others), emit).build(results)

    return dispatch(
        [x, packed, *others],
        [(whole, d) for d in results],
        # the groups that read the same weights run after each other
        [(panels, cut.panels), (shape.batch, 1), (high, cut.rows)],
        body,
    )


class _Body:
    """The loops of one work-group."""

    def __init__(
        self,
        k: WorkgroupBuilder,
        shape: ConvShape,
        cut: ConvPlan,
        isa: Isa,
        others: int,
        emit: Emit,
    ) -> None:
        self.k, self.shape, self.cut, self.isa, self.emit = k, shape, cut, isa, emit
        self.x, self.w, *self.others = k.inputs
        self.panel, self.image, self.row = k.at
        self.blocks = shape.inputs // cut.block
        self.vectors = cut.width // isa.lanes
        high = shape.counts[0]
        ragged = high % cut.rows
        self.rows: Index = k.min(cut.rows, k.sub(high, self.row)) if ragged else cut.rows
        channels = shape.inputs if shape.in_place else cut.block
        # how far apart, in elements of the scratch or the input, are neighbours
        if shape.planar:
            self.line = shape.reach[1]
            self.pitch, self.step = self.line * channels, 1
        else:
            self.line = 0
            width = shape.size[1] if shape.in_place else shape.reach[1]
            self.pitch, self.step = width * channels, channels

    def build(self, results: Sequence[DType]) -> list[ResultTile]:
        k, cut = self.k, self.cut
        sizes = (1, self.rows, self.shape.counts[1], cut.panels * cut.width)
        tiles = [k.empty(sizes, d) for d in results]
        scratch = []
        if not self.shape.in_place:
            scratch = [k.empty((_input_rows(self.shape, cut.rows) * self.pitch,))]

        def block(b: Index, carried: list[ir.Value]) -> list[ir.Value]:
            if scratch:
                source = self.copied(carried[0], b)
                return [source, *self.panels(source, b, carried[1:])]
            return self.panels(self.x, b, carried)

        carried = [*scratch, *tiles]
        carried = (
            block(0, carried) if self.blocks == 1 else k.loop(0, self.blocks, 1, carried, block)
        )
        at = (self.image, self.row, 0, k.mul(self.panel, cut.width))
        return [ResultTile(t, at, sizes) for t in carried[len(scratch) :]]

    # ---- the input's rows --------------------------------------------------------------------

    def copied(self, scratch: ir.Value, b: Index) -> ir.Value:
        """Return the scratch with the rows of the padded image that the work-group reads."""
        k, s = self.k, self.shape
        high, wide = s.size
        first = k.sub(k.mul(self.row, s.stride[0]), s.low[0])
        count = k.add(
            k.mul(k.sub(self.rows, 1), s.stride[0]), (s.kernel[0] - 1) * s.dilation[0] + 1
        )
        used = max(0, min(wide, s.reach[1] - s.low[1]))
        left = min(s.low[1], s.reach[1])
        right = s.reach[1] - left - used
        unit = 1 if s.planar else self.cut.block

        def line(into: ir.Value, at: Index, source: Index) -> ir.Value:
            """One row: its border, and what is copied."""
            into = self.zeros(into, at, left * unit)
            start = k.add(at, left * unit)
            if s.planar or self.blocks == 1:
                into = self.copy(into, start, source, used * unit)
            elif used:

                def pixel(p: Index, c: list[ir.Value]) -> list[ir.Value]:
                    to, of = k.add(start, k.mul(p, unit)), k.add(source, k.mul(p, s.inputs))
                    return [self.copy(c[0], to, of, unit)]

                (into,) = k.loop(0, used, 1, [into], pixel)
            return self.zeros(into, k.add(start, used * unit), right * unit)

        def row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
            y, at = k.add(first, r), k.mul(r, self.pitch)

            def inside() -> list[ir.Value]:
                if not s.planar:
                    source = k.mul(k.add(k.mul(self.image, high), y), wide * s.inputs)
                    source = k.add(source, k.mul(b, self.cut.block))
                    return [line(carried[0], at, source)]

                def plane(c: Index, inner: list[ir.Value]) -> list[ir.Value]:
                    source = k.add(k.mul(self.image, s.inputs), c)
                    source = k.mul(k.add(k.mul(source, high), y), wide)
                    return [line(inner[0], k.add(at, k.mul(c, self.line)), source)]

                return k.loop(0, self.cut.block, 1, carried, plane)

            def outside() -> list[ir.Value]:
                return [self.zeros(carried[0], at, self.pitch)]

            # one comparison: a row ahead of the image is a huge unsigned number
            return k.when(k.is_below(y, high), inside, outside, [scratch.type])

        return k.loop(0, count, 1, [scratch], row)[0]

    def zeros(self, into: ir.Value, at: Index, count: int) -> ir.Value:
        k = self.k

        def put(i: Index, lanes: int, t: ir.Value) -> ir.Value:
            return k.write(k.splat(0.0, lanes), t, [k.add(at, i)])

        return self.chunks(into, count, put)

    def copy(self, into: ir.Value, at: Index, source: Index, count: int) -> ir.Value:
        k = self.k

        def put(i: Index, lanes: int, t: ir.Value) -> ir.Value:
            return k.write(k.read(self.x, [k.add(source, i)], lanes), t, [k.add(at, i)])

        return self.chunks(into, count, put)

    def chunks(
        self, into: ir.Value, count: int, put: Callable[[Index, int, ir.Value], ir.Value]
    ) -> ir.Value:
        """`put` at 0, n, 2n .. up to `count`, as vectors of n = four registers, then less."""
        big = 4 * self.isa.lanes
        whole = count // big * big
        if whole > big:
            (into,) = self.k.loop(0, whole, big, [into], lambda i, c: [put(i, big, c[0])])
        elif whole:
            into = put(0, big, into)
        rest, at = count - whole, whole
        lanes = big // 2
        while rest:
            if lanes <= rest:
                into = put(at, lanes, into)
                at, rest = at + lanes, rest - lanes
            else:
                lanes //= 2
        return into

    # ---- tiles -------------------------------------------------------------------------------

    def panels(self, source: ir.Value, b: Index, tiles: list[ir.Value]) -> list[ir.Value]:
        k, cut, s = self.k, self.cut, self.shape
        wide = s.counts[1]
        whole = wide // cut.pixels * cut.pixels

        def panel(p: Index, carried: list[ir.Value]) -> list[ir.Value]:
            def row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
                def tile(q: Index, carried: list[ir.Value]) -> list[ir.Value]:
                    return self.tile(source, b, p, r, q, cut.pixels, carried)

                carried = self.each(0, whole, cut.pixels, carried, tile)
                if whole < wide:
                    carried = self.tile(source, b, p, r, whole, wide - whole, carried)
                return carried

            return k.loop(0, self.rows, 1, carried, row)

        return self.each(0, cut.panels, 1, tiles, panel)

    def each(
        self,
        start: int,
        stop: int,
        step: int,
        carried: list[ir.Value],
        body: Callable[[Index, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Build a loop, unless it has one round."""
        if stop - start <= step:
            return body(start, carried)
        return self.k.loop(start, stop, step, carried, body)

    def tile(
        self, source: ir.Value, b: Index, p: Index, r: Index, q: Index, pixels: int,
        tiles: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """`pixels` pixels from (r, q) on of panel `p`: sums, and what follows them."""
        k, s, lanes = self.k, self.shape, self.isa.lanes
        panel = k.add(self.panel, p)
        base = k.add(k.mul(r, s.stride[0] * self.pitch), k.mul(q, s.stride[1] * self.step))
        if s.in_place:
            top = k.add(k.mul(self.image, s.size[0]), k.mul(self.row, s.stride[0]))
            base = k.add(base, k.mul(top, self.pitch))
        columns = [k.add(k.mul(p, self.cut.width), j * lanes) for j in range(self.vectors)]
        spots = [[0, r, k.add(q, i), c] for i in range(pixels) for c in columns]
        zero = [k.splat(0.0, lanes)] * len(spots)
        init = zero
        if self.blocks > 1:
            init = k.when(
                k.is_equal(b, 0),
                lambda: zero,
                lambda: [k.read(tiles[0], at, lanes) for at in spots],
                [v.type for v in zero],
            )
        sums = self.sums(source, base, panel, b, pixels, init)

        def last() -> list[ir.Value]:
            out, reads = list(tiles), {}
            first = k.mul(self.panel, self.cut.width)
            for at, total in zip(spots, sums, strict=True):
                where = [self.image, k.add(self.row, at[1]), at[2], k.add(first, at[3])]
                found = self.emit(k, self.others, total, where, reads)
                out = [k.write(v, t, at) for v, t in zip(found, out, strict=True)]
            return out

        if self.blocks == 1:
            return last()

        def kept() -> list[ir.Value]:
            out = tiles[0]
            for at, total in zip(spots, sums, strict=True):
                out = k.write(total, out, at)
            return [out, *tiles[1:]]

        return k.when(k.is_equal(b, self.blocks - 1), last, kept, [t.type for t in tiles])

    def sums(
        self, source: ir.Value, base: Index, panel: Index, b: Index, pixels: int,
        init: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the accumulators after all taps of a channel block."""
        k, s, lanes = self.k, self.shape, self.isa.lanes
        loops = self.taps()
        apart = s.stride[1] * self.step

        def nest(level: int, at: Index, tap: Index, acc: list[ir.Value]) -> list[ir.Value]:
            if level == len(loops):
                weights = [
                    k.read(self.w, [panel, b, tap, j * lanes], lanes) for j in range(self.vectors)
                ]
                out = []
                for i in range(pixels):
                    value = k.broadcast(k.element(source, [k.add(at, i * apart)]), lanes)
                    for j, w in enumerate(weights):
                        out.append(k.fma(value, w, acc[i * self.vectors + j]))
                return out
            count, stride = loops[level]
            inner = int(np.prod([n for n, _ in loops[level + 1 :]]))

            def one(i: Index, acc: list[ir.Value]) -> list[ir.Value]:
                return nest(
                    level + 1, k.add(at, k.mul(i, stride)), k.add(tap, k.mul(i, inner)), acc
                )

            return self.each(0, count, 1, acc, one)

        return nest(0, base, 0, init)

    def taps(self) -> list[tuple[int, int]]:
        """Return the loops of a window, (rounds, elements apart), as `pack` orders the weights."""
        (kh, kw), (dh, dw) = self.shape.kernel, self.shape.dilation
        block = self.cut.block
        rows = (kh, dh * self.pitch)
        if self.shape.planar:
            return [rows, (block, self.line), (kw, dw)]
        if dw == 1 or kw == 1:
            return [rows, (kw * block, 1)]
        return [rows, (kw, dw * block), (block, 1)]
