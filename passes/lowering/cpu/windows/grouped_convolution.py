"""Grouped and depthwise convolutions as vector loops: lanes are neighbouring output channels.

A workgroup computes some rows of one image. Tiles of a few adjacent pixels accumulate in registers
over the rows of their windows; nothing is copied.

Window rows outside of the image are skipped. Only tiles at the ends of a row check which columns
are inside. 8-bit integers are converted to f32 minus their zero point, so padding is 0 and sums are
exact. The zero point's share of each channel is added back. If a vector holds whole groups, as for
depthwise convolutions, its inputs are a vector too, shuffled so that each lane has its group's
channel. Wider groups process one channel at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, Spot, Stores
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    ceil_div,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape, Extents
from mgx_mlir.passes.lowering.scalar import TypedScalar

GROUP_ELEMENTS = 16384  # results of a workgroup; fewer do not pay for its start
DYNAMIC_ROWS = 4  # rows of a workgroup where the width or the height is dynamic
MAX_STEPS = 512  # multiply-adds of a tile that are unrolled
SHORTEST = 4  # least pixels of a tile, unless rows are shorter
ENDS = 2  # unrolled tiles at the ends of a static row, so that columns outside cost nothing
F32 = dtypes.FLOAT
# number of products of 8-bit integers minus zero points whose sum is exact in f32
MAX_PRODUCTS = (1 << 24) // (255 * 128) // 2

Carried = list[ir.Value]


@dataclass(frozen=True)
class GroupedPlan:
    """The tiling of a grouped convolution."""

    groups: int
    inputs: int  # input channels of a group
    outputs: int  # output channels of a group
    pixels: int  # pixels of a tile
    vectors: int  # registers of output channels of a tile
    lanes: int  # channels of a register
    shuffled: bool  # registers hold whole groups, and inputs are shuffled to their lanes

    @property
    def width(self) -> int:
        """Output channels of a tile."""
        return self.vectors * self.lanes


def plan(shape: ConvShape, groups: int, isa: Isa) -> GroupedPlan | None:
    """Return the cut of a convolution of `groups` groups; shape.inputs are those of one.

    None where these loops do not fit it.
    """
    inputs, outputs = shape.inputs, shape.outputs // groups
    if shape.planar or 0 in (inputs, outputs):
        return None
    if shape.unit and inputs * shape.kernel[0] * shape.kernel[1] > MAX_PRODUCTS:
        return None
    shuffled = isa.lanes % outputs == 0 and outputs < isa.lanes and inputs <= 4 * outputs
    # a pixel's sums beside the taps of a row; 8 hide the latency of the multiply-adds
    vectors, most = 1, max(isa.registers // 4, min(8, isa.registers - 1 - shape.kernel[1]))
    if not shuffled:
        registers = -(-outputs // isa.lanes)
        most, vectors = next((p, v) for p, v in isa.tiles if registers % v == 0)
    steps = shape.kernel[1] * vectors * (inputs if shuffled else 1)
    most = min(most, MAX_STEPS // steps)
    if most == 0:
        return None
    wide = shape.counts[1]
    pixels = -(-wide // -(-wide // most)) if wide > 0 else most
    return GroupedPlan(groups, inputs, outputs, pixels, vectors, isa.lanes, shuffled)


def pack(weights: np.ndarray, cut: GroupedPlan, border: int = 0) -> np.ndarray:
    """Weights [kh, kw, inputs, all outputs] in the order they are read, as f32.

    [kh, kw, input, channel] where groups are shuffled, else [group, panel, kh, input, kw, channel];
    channels are filled up with zeros. border: padding value of 8-bit integers; if it is not 0, one
    more row has the initial sums.
    """
    weights = weights.astype(np.float32, order="C")
    if border:
        starts = np.zeros_like(weights[:1])
        starts[0, 0, 0] = border * weights.sum((0, 1, 2))
        weights = np.concatenate([weights, starts])
    kh, kw, ci, co = weights.shape
    if cut.shuffled:
        filled = np.pad(weights, [(0, 0)] * 3 + [(0, -co % cut.lanes)])
        return np.ascontiguousarray(filled.reshape(kh, kw * ci, filled.shape[-1]))
    w = weights.reshape(kh, kw, ci, cut.groups, cut.outputs)
    w = np.pad(w, [(0, 0)] * 4 + [(0, -cut.outputs % cut.width)])
    w = w.reshape(kh, kw, ci, cut.groups, -1, cut.width).transpose(3, 4, 0, 2, 1, 5)
    return np.ascontiguousarray(w.reshape(-1, kh, ci * kw, cut.width))


def convolution(
    shape: ConvShape, cut: GroupedPlan, x: ir.Value, packed: ir.Value, epilogue: Epilogue,
    extents: Extents | None = None, dtype: DType = F32,
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch. x: the image [N, H, W, C], of type `dtype`. packed: of `pack`.

    extents: those that the shape leaves dynamic, as values.
    """
    known = extents or Extents.of(shape)
    high, wide = known.counts
    rows = DYNAMIC_ROWS
    if isinstance(wide, int) and isinstance(high, int):
        rows = min(max(1, high), max(1, GROUP_ELEMENTS // max(1, wide * shape.outputs)))

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        return _Loops(k, shape, cut, epilogue, known.inside(k), dtype).build(rows)

    return dispatch(
        [x, packed, *epilogue.inputs],
        [((known.batch, high, wide, shape.outputs), d) for d in epilogue.stored],
        [(known.batch, 1), (high, rows)],
        body,
        known.all,
    )


class _Loops:
    """Builds the body of one workgroup."""

    def __init__(
        self, k: WorkgroupBuilder, shape: ConvShape, cut: GroupedPlan, epilogue: Epilogue,
        extents: Extents, dtype: DType,
    ) -> None:  # fmt: skip
        self.k, self.shape, self.cut = k, shape, cut
        self.extents, self.dtype = extents, dtype
        self.x, self.w, *others = k.inputs
        self.stores = Stores(k, epilogue, others)
        self.image, self.row = k.at

    def build(self, rows: int) -> list[ResultTile]:
        k, (high, wide) = self.k, self.extents.counts
        here = k.covered(self.row, rows, high)
        sizes = (1, here, wide, self.shape.outputs)
        tiles = [k.empty(sizes, d) for d in self.stores.epilogue.stored]
        made = k.loop(0, here, 1, tiles, self.one_row)
        return [ResultTile(t, (self.image, self.row, 0, 0), sizes) for t in made]

    # ---- rows and columns --------------------------------------------------------------------

    def one_row(self, r: Index, tiles: Carried) -> Carried:
        taps = self.rows_of_window(self.k.add(self.row, r))

        def some(q: Index, pixels: int, checked: bool, carried: Carried) -> Carried:
            return self.pixels(r, q, pixels, checked, taps, carried)

        return self.along_row(tiles, some)

    def rows_of_window(self, row: Index) -> tuple[Index, Index, Index]:
        """Return where a window starts, and the rows of it, [first, last), inside of the image."""
        k, s = self.k, self.shape
        (size, width), d, taps = self.extents.size, s.dilation[0], s.kernel[0]
        start = k.sub(k.mul(row, s.stride[0]), s.low[0])
        first: Index = 0
        last: Index = taps
        if s.low[0]:
            first = k.div(k.add(k.max(k.sub(0, start), 0), d - 1), d)
        if s.low[0] or s.high[0]:
            last = k.min(k.div(k.add(k.max(k.sub(size, start), 0), d - 1), d), taps)
        if s.low[1] or s.high[1]:
            last = k.min(last, k.mul(width, taps))  # an empty row reads nothing
        return start, k.min(first, last), last

    def along_row(
        self, tiles: Carried, some: Callable[[Index, int, bool, Carried], Carried]
    ) -> Carried:
        """Build the tiles of a row: those at its ends are checked, the last overlaps another."""
        k, s, most = self.k, self.shape, self.cut.pixels
        wide, width = self.extents.counts[1], self.extents.size[1]
        padded = bool(s.low[1] or s.high[1])
        border = ceil_div(s.low[1], s.stride[1])  # pixels that reach the left border
        assert isinstance(border, int)
        reach = s.span(1, 1) - s.low[1]

        def by(most: int) -> Carried:
            head = -(-border // most)
            count = k.div(k.add(wide, most - 1), most)
            begin, end = k.min(head, count), k.div(wide, most)
            if padded:
                inside = k.div(k.max(0, k.add(k.sub(width, reach), s.stride[1])), s.stride[1])
                end = k.max(begin, k.div(k.min(wide, inside), most))
            made = self.some_tiles(0, begin, wide, padded, tiles, some, most)
            made = self.some_tiles(begin, end, wide, False, made, some, most)
            return self.some_tiles(end, count, wide, padded, made, some, most)

        def fitting(most: int) -> Carried:
            """Build tiles of `most` pixels, or of half as many where a row is shorter."""
            if most == 1:
                return k.loop(0, wide, 1, tiles, lambda q, c: some(q, 1, padded, c))
            shorter = most // 2 if most // 2 >= SHORTEST else 1
            return k.when(
                k.is_less(wide, most), lambda: fitting(shorter), lambda: by(most),
                [t.type for t in tiles],
            )  # fmt: skip

        if not isinstance(wide, int):
            return fitting(most)
        if wide > most:
            return by(most)
        return some(0, wide, padded, tiles) if wide else tiles

    def some_tiles(
        self, start: Index, stop: Index, wide: Index, checked: bool, tiles: Carried,
        some: Callable[[Index, int, bool, Carried], Carried], most: int,
    ) -> Carried:  # fmt: skip
        """Build tiles of `most` pixels, numbers [start, stop), none beyond the row's end."""
        k = self.k

        def one(i: Index, carried: Carried) -> Carried:
            return some(k.min(k.mul(i, most), k.sub(wide, most)), most, checked, carried)

        if isinstance(start, int) and isinstance(stop, int) and stop - start <= ENDS:
            for i in range(start, stop):
                tiles = one(i, tiles)
            return tiles
        return k.loop(start, stop, 1, tiles, one)

    # ---- channels ----------------------------------------------------------------------------

    def pixels(
        self, r: Index, q: Index, pixels: int, checked: bool, taps: tuple[Index, Index, Index],
        tiles: Carried,
    ) -> Carried:  # fmt: skip
        """Build the tiles of all channels of some pixels from (r, q) on."""
        k, cut = self.k, self.cut
        columns = self.columns(q, pixels, checked)
        if cut.shuffled:

            def vectors(c: Index, masked: bool, carried: Carried) -> Carried:
                sums = self.shuffled_sums(c, masked, pixels, columns, taps)
                return self.store(sums, r, q, c, pixels, masked, carried)

            return k.along(self.shape.outputs, cut.lanes, tiles, vectors)
        panels = -(-cut.outputs // cut.width)

        def group(g: Index, carried: Carried) -> Carried:
            def panel(p: Index, carried: Carried) -> Carried:
                sums = self.broadcast_sums(g, k.add(k.mul(g, panels), p), pixels, columns, taps)
                # results stored past a group's end are overwritten by the next group
                c = k.add(k.mul(g, cut.outputs), k.mul(p, cut.width))
                ragged = cut.outputs % cut.width != 0
                return self.store(sums, r, q, c, pixels, ragged, carried)

            return k.loop(0, panels, 1, carried, panel) if panels > 1 else panel(0, carried)

        return k.loop(0, cut.groups, 1, tiles, group)

    def columns(
        self, q: Index, pixels: int, checked: bool
    ) -> dict[int, tuple[Index, ir.Value | None]]:
        """Return the columns that some pixels read, by distance from the first.

        Each comes with a check that it is inside of the image, if needed; columns known to be
        outside are omitted.
        """
        k, s, width = self.k, self.shape, self.extents.size[1]
        start = k.sub(k.mul(q, s.stride[1]), s.low[1])
        last = (pixels - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1]
        found: dict[int, tuple[Index, ir.Value | None]] = {}
        for i in range(pixels):
            for j in range(s.kernel[1]):
                apart = i * s.stride[1] + j * s.dilation[1]
                at = k.add(start, apart)
                if apart in found:
                    continue
                if not checked:
                    found[apart] = at, None
                elif isinstance(at, int) and isinstance(width, int):
                    if 0 <= at < width:
                        found[apart] = at, None
                elif isinstance(at, int) and at < 0:
                    continue
                elif s.low[1] <= apart <= last - s.high[1]:
                    found[apart] = at, None  # pixels inside of the image
                else:
                    inside = k.is_below(at, width)
                    found[apart] = arith.SelectOp(inside, k.index(at), k.index(0)).result, inside
        return found

    def value(
        self, y: Index, column: tuple[Index, ir.Value | None], c: Index, lanes: int, masked: bool
    ) -> ir.Value:
        """Return elements of the image: a vector, or with `lanes` 0 one element."""
        k, (at, inside) = self.k, column
        where = [self.image, y, at, c]
        if lanes:
            found = k.read(self.x, where, lanes, masked=0.0 if masked else None)
        else:
            found = k.element(self.x, where)
        found = self.real(found, lanes)
        if inside is None:
            return found
        zero = k.splat(0.0, lanes) if lanes else k.number(0.0)
        return arith.SelectOp(inside, found, zero).result

    def real(self, x: ir.Value, lanes: int) -> ir.Value:
        """Return elements as f32, 8-bit integers minus their zero point."""
        k, s = self.k, self.shape
        if not s.unit:
            if lanes:
                return widen(k, TypedScalar(x, self.dtype), lanes).value
            return x if self.dtype is F32 else arith.ExtFOp(ir.F32Type.get(), x).result
        words, kind = ir.IntegerType.get_signless(32), ir.F32Type.get()
        if lanes:
            words, kind = k.vector_type(lanes, dtypes.INT32), k.vector_type(lanes)
        extend = arith.ExtSIOp if s.signed else arith.ExtUIOp
        found = arith.SIToFPOp(kind, extend(words, x).result).result
        if not s.border:
            return found
        number = k.splat(float(s.border), lanes) if lanes else k.number(float(s.border))
        return arith.SubFOp(found, number).result

    def starts(self, at: Sequence[Index], vectors: int) -> Carried:
        """Return the initial sums of some registers; `at` is the index of their weights."""
        k, lanes = self.k, self.cut.lanes
        if not self.shape.border:
            return [k.splat(0.0, lanes)] * vectors
        *rest, last = at
        return [k.read(self.w, [*rest, k.add(last, v * lanes)], lanes) for v in range(vectors)]

    def shuffled_sums(
        self, c: Index, masked: bool, pixels: int,
        columns: dict[int, tuple[Index, ir.Value | None]], taps: tuple[Index, Index, Index],
    ) -> Carried:  # fmt: skip
        """Return the sums of one vector of channels for each pixel."""
        k, s, cut = self.k, self.shape, self.cut
        lanes, ci, co = cut.lanes, cut.inputs, cut.outputs
        start, first, last = taps
        source = k.mul(k.div(c, co), ci)

        def tap_row(i: Index, acc: Carried) -> Carried:
            y = k.add(start, k.mul(i, s.dilation[0]))
            weights: dict[int, ir.Value] = {}
            acc = list(acc)
            for apart, column in columns.items():
                v = self.value(y, column, source, lanes // co * ci, masked)
                for n in range(ci):
                    own = v
                    if (ci, co) != (1, 1):
                        order = [m // co * ci + n for m in range(lanes)]
                        own = vector.ShuffleOp(v, v, order).result
                    for p, j in self.readers(apart, pixels):
                        t = j * ci + n
                        if t not in weights:
                            weights[t] = k.read(self.w, [i, t, c], lanes)
                        acc[p] = k.fma(own, weights[t], acc[p])
            return acc

        begin = self.starts([s.kernel[0], 0, c], 1)
        return k.loop(first, last, 1, begin * pixels, tap_row)

    def broadcast_sums(
        self, g: Index, panel: Index, pixels: int,
        columns: dict[int, tuple[Index, ir.Value | None]], taps: tuple[Index, Index, Index],
    ) -> Carried:  # fmt: skip
        """Return the sums of one panel of a group, a vector for each pixel and register."""
        k, s, cut = self.k, self.shape, self.cut
        lanes, kw, vectors = cut.lanes, s.kernel[1], cut.vectors
        start, first, last = taps
        source = k.mul(g, cut.inputs)

        def tap_row(i: Index, acc: Carried) -> Carried:
            y = k.add(start, k.mul(i, s.dilation[0]))

            def channel(n: Index, acc: Carried) -> Carried:
                acc = list(acc)
                weights: dict[tuple[int, int], ir.Value] = {}
                for apart, column in columns.items():
                    element = self.value(y, column, k.add(source, n), 0, False)
                    own = k.broadcast(element, lanes)
                    for p, j in self.readers(apart, pixels):
                        for v in range(vectors):
                            if (j, v) not in weights:
                                at = [panel, i, k.add(k.mul(n, kw), j), v * lanes]
                                weights[j, v] = k.read(self.w, at, lanes)
                            to = p * vectors + v
                            acc[to] = k.fma(own, weights[j, v], acc[to])
                return acc

            return k.loop(0, cut.inputs, 1, acc, channel)

        begin = self.starts([panel, s.kernel[0], 0, 0], vectors)
        return k.loop(first, last, 1, begin * pixels, tap_row)

    def readers(self, apart: int, pixels: int) -> list[tuple[int, int]]:
        """Return the pixels and taps, along the row, that read a column."""
        s = self.shape
        return [
            (p, j)
            for p in range(pixels)
            for j in range(s.kernel[1])
            if p * s.stride[1] + j * s.dilation[1] == apart
        ]

    def store(
        self, sums: Carried, r: Index, q: Index, c: Index, pixels: int, masked: bool,
        tiles: Carried,
    ) -> Carried:  # fmt: skip
        k, vectors, lanes = self.k, self.cut.vectors, self.cut.lanes
        if self.shape.unit:
            words = k.vector_type(lanes, dtypes.INT32)
            sums = [arith.FPToSIOp(words, total).result for total in sums]

        def spots(p: Index) -> list[Spot]:
            return [
                Spot(
                    [self.image, k.add(self.row, r), k.add(q, p), k.add(c, v * lanes)],
                    [0, r, k.add(q, p), k.add(c, v * lanes)],
                    masked and v == vectors - 1,
                )
                for v in range(vectors)
            ]

        return self.stores.rows(sums, pixels, spots, tiles)
