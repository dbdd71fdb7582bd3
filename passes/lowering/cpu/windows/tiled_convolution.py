"""Convolutions in tile registers: windows are copied as the rows of a matmul.

Where taps of a row are next to each other, a row of a window is one run of elements, else a tap is
one. A run is filled up to whole chunks, in the weights too. Pixels count on from row to row and
from image to image.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul import tiled_dot
from mgx_mlir.passes.lowering.cpu.matmul.panel import Tiles
from mgx_mlir.passes.lowering.cpu.matmul.tile_registers import (
    ACROSS,
    ROWS,
    Operands,
    most_chunks,
)
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape, Extents
from mgx_mlir.passes.lowering.index_builder import IndexBuilder

_LEAST_RUN = 32  # bytes: chunks that are emptier take longer than neighbours in vectors


@dataclass(frozen=True)
class Runs:
    """The runs of elements that a window has, in order."""

    operands: Operands
    taps: tuple[int, int]  # numbers of runs: rows of taps, taps of a row
    length: int  # elements of a run
    pieces: int  # pieces of a run that are in scratch memory together
    chunks: int  # chunks of a piece

    @staticmethod
    def of(shape: ConvShape) -> Runs:
        """Return the runs of a convolution."""
        (kh, kw), joined = shape.kernel, shape.dilation[1] == 1 or shape.kernel[1] == 1
        length = shape.inputs * (kw if joined else 1)
        operands = Operands(shape.multiplied)
        whole = operands.chunks_of(length)
        pieces = -(-whole // most_chunks(ACROSS))
        return Runs(operands, (kh, 1 if joined else kw), length, pieces, -(-whole // pieces))

    @property
    def count(self) -> int:
        """The number of runs."""
        return self.taps[0] * self.taps[1]

    @property
    def filled(self) -> int:
        """The elements of a run, filled up."""
        return self.pieces * self.chunks * self.operands.chunk

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """Return weights [kh, kw, Ci, Co] as [depth, Co]."""
        runs = weights.reshape(self.count, self.length, weights.shape[-1])
        return np.pad(runs, [(0, 0), (0, self.filled - self.length), (0, 0)]).reshape(
            self.count * self.filled, -1
        )


def takes(shape: ConvShape, isa: Isa) -> bool:
    """Return whether tile registers compute a convolution here."""
    if shape.unit == 0 or not Operands(shape.multiplied).instruction(isa):
        return False
    return Runs.of(shape).length * shape.multiplied.size >= _LEAST_RUN


def plan(shape: ConvShape) -> tiled_dot.TiledPlan:
    """Return the tiling of a convolution."""
    runs, known = Runs.of(shape), (shape.batch, *shape.counts)
    pixels = None if DYN in known else int(np.prod(known))
    chunks = runs.count * runs.pieces * runs.chunks
    return tiled_dot.plan(runs.operands, pixels, chunks, shape.outputs, runs.chunks)


def convolution(
    shape: ConvShape, cut: tiled_dot.TiledPlan, isa: Isa, x: ir.Value, packed: ir.Value,
    epilogue: Epilogue, extents: Extents,
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch: results of [pixels, outputs].

    x: the input as a vector of all its elements. packed: `Runs.matrix` in the plan's layout.
    epilogue: by (pixel, channel).
    """
    pixels = IndexBuilder().product([extents.batch, *extents.counts])
    return tiled_dot.product(
        pixels, shape.outputs, cut, isa, [x, packed], epilogue, extents.all,
        lambda k, row: _Windows(k, shape, Runs.of(shape), cut, extents.inside(k), row),
    )  # fmt: skip


def channels_last(shape: ConvShape, extents: Extents, x: ir.Value) -> ir.Value:
    """Make the dispatch that gives pixels their channels, which planes [N, C, H, W] have apart."""
    k = IndexBuilder()
    pixels, own = k.product(extents.size), [extents.batch, *extents.size]
    stored = Operands(shape.multiplied).stored

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        image, (source,), c = k.at[0], k.inputs, shape.inputs
        count = k.product([k.inner(n) for n in extents.size])

        def pixel(p: Index, made: Tiles) -> Tiles:
            out = made[0]
            for j in range(c):
                at = k.add(k.mul(k.add(k.mul(image, c), j), count), p)
                out = k.put(k.element(source, [at]), out, [0, k.add(k.mul(p, c), j)])
            return [out]

        sizes = [1, k.mul(count, c)]
        made = k.loop(0, count, 1, [k.empty(sizes, stored)], pixel)
        return [ResultTile(made[0], (image, 0), sizes)]

    result = ([extents.batch, k.mul(pixels, shape.inputs)], stored)
    return dispatch([x], [result], [(extents.batch, 1)], body, own)[0]


@dataclass(frozen=True)
class _Windows:
    """The windows of the pixels of a workgroup, from a pixel on."""

    k: WorkgroupBuilder
    shape: ConvShape
    runs: Runs
    cut: tiled_dot.TiledPlan
    extents: Extents
    pixel: Index

    def copied(self, r: Index, rows: Index, start: Index, count: int, into: ir.Value) -> ir.Value:
        """Return scratch with some pieces of runs; past the last pixel that is read again."""
        k, pieces = self.k, count // self.runs.chunks
        first, last = k.add(self.pixel, r), k.sub(rows, 1)
        begin = k.div(start, self.runs.chunks)

        def pixel(i: Index, c: Tiles) -> Tiles:
            at = self._place(k.add(first, k.min(i, last)))
            block, row = k.div(i, ROWS), k.mul(k.rem(i, ROWS), self.runs.operands.chunk)

            def piece(n: Index, c: Tiles) -> Tiles:
                spot = (k.mul(n, self.runs.chunks), block, row)
                return [self._piece(at, k.add(begin, n), c[0], spot)]

            return k.each(0, pieces, 1, c, piece)

        return k.loop(0, self.cut.blocks * ROWS, 1, [into], pixel)[0]

    def _place(self, pixel: Index) -> tuple[Index, Index, Index]:
        """Return the image of a pixel, and the row and column where its window starts."""
        k, s = self.k, self.shape
        high, wide = self.extents.counts
        row, column = k.div(pixel, wide), k.rem(pixel, wide)
        image, row = k.div(row, high), k.rem(row, high)
        return (
            image,
            k.sub(k.mul(row, s.stride[0]), s.low[0]),
            k.sub(k.mul(column, s.stride[1]), s.low[1]),
        )

    def _piece(
        self, at: tuple[Index, Index, Index], number: Index, into: ir.Value,
        spot: tuple[Index, Index, Index],
    ) -> ir.Value:  # fmt: skip
        """Return scratch with a piece of a run of a window, and the border outside of the image."""
        k, s, runs = self.k, self.shape, self.runs
        (image, top, left), (high, wide) = at, self.extents.size
        run, begin = k.div(number, runs.pieces), k.rem(number, runs.pieces)
        across = runs.taps[1]
        row = k.add(top, k.mul(k.div(run, across), s.dilation[0]))
        column = k.add(left, k.mul(k.rem(run, across), s.dilation[1]))
        pixels = runs.length // s.inputs  # pixels that the run has
        source = k.mul(k.add(k.mul(k.add(k.mul(image, high), row), wide), column), s.inputs)

        def chunk(d: Index, c: Tiles, limits: tuple[Index, Index] | None) -> Tiles:
            e = k.mul(k.add(k.mul(begin, runs.chunks), d), runs.operands.chunk)
            at, x = k.add(source, e), k.inputs[0]
            if limits is None:
                v = k.read(x, [at], runs.operands.chunk)
            else:
                v = self._masked(x, at, *(k.sub(n, e) for n in limits))
            return [k.write(v, c[0], [k.add(spot[0], d), spot[1], spot[2]])]

        def inside() -> Tiles:
            own = 0, runs.length
            whole = runs.chunks if runs.length == runs.filled else runs.chunks - 1
            if runs.pieces > 1 and whole < runs.chunks:  # the last chunk is that of one piece
                whole = 0
            made = k.each(0, whole, 1, [into], lambda d, c: chunk(d, c, None))
            return k.each(whole, runs.chunks, 1, made, lambda d, c: chunk(d, c, own))

        def partly() -> Tiles:
            begins = k.mul(k.max(0, k.sub(0, column)), s.inputs)
            ends = k.mul(k.min(pixels, k.sub(wide, column)), s.inputs)
            is_row = k.is_below(row, high)
            own = begins, arith.SelectOp(is_row, k.index(ends), k.index(0)).result
            return k.each(0, runs.chunks, 1, [into], lambda d, c: chunk(d, c, own))

        if s.in_place:
            return inside()[0]
        most = k.add(k.sub(wide, pixels), 1)
        is_inside = arith.AndIOp(k.is_below(row, high), k.is_below(column, most)).result
        # a window that is wider than the image is nowhere inside of it
        is_inside = arith.AndIOp(is_inside, k.is_less(0, most)).result
        return k.when(is_inside, inside, partly, [into.type])[0]

    def _masked(self, x: ir.Value, at: Index, low: Index, end: Index) -> ir.Value:
        """Return a vector of which lanes from `low` to `end` are read; others are the border."""
        k, own, number = self.k, self.runs.operands, self.shape.border
        word, count = ir.IntegerType.get_signless(32), own.chunk
        lanes = k.vector_type(count, dtypes.INT32)
        numbers: Sequence[ir.Attribute] = [ir.IntegerAttr.get(word, i) for i in range(count)]
        each = arith.ConstantOp(lanes, ir.DenseElementsAttr.get(numbers, lanes)).result

        def limit(n: Index) -> ir.Value:
            return k.broadcast(arith.IndexCastOp(word, k.index(n)).result, count)

        from_low = arith.CmpIOp(arith.CmpIPredicate.sge, each, limit(low)).result
        to_end = arith.CmpIOp(arith.CmpIPredicate.slt, each, limit(end)).result
        border = k.number(number - 256 if number > 127 else number, own.stored)
        return vector.TransferReadOp(
            k.vector_type(count, own.stored), x, [k.index(at)], ir.AffineMap.get_identity(1),
            border, [True], mask=arith.AndIOp(from_low, to_end).result,
        ).result  # fmt: skip
