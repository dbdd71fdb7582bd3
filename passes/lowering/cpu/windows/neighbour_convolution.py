"""The loops of one work-group of a convolution whose instruction multiplies neighbouring channels.

As those of f32, of all channels at once: neighbouring channels of a pixel are read together, as the
processor's instruction multiplies them, and filled up to whole groups of such. Their type says how
(byte_convolution.py, pair_convolution.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index
from mgx_mlir.passes.lowering.cpu.matmul.dot_instructions import Multiply
from mgx_mlir.passes.lowering.cpu.windows.convolution_loops import ConvolutionLoops, Strip
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape

WORD = 32  # bits in which an instruction takes neighbours


def rows_of(weights: np.ndarray, shape: ConvShape) -> np.ndarray:
    """Weights [kh, kw, Ci, Co] as [kh * kw * Ci, Co]; channels that are filled up are 0."""
    filled = np.pad(weights, [(0, 0), (0, 0), (0, shape.filled - shape.inputs), (0, 0)])
    return filled.reshape(-1, shape.outputs)


class NeighbourConvolutionLoops(ConvolutionLoops):
    """Builds the body. multiply: adds the products of some neighbours."""

    multiply: Multiply

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        if self.shape.planar:  # the copy puts the channels of a pixel next to each other
            self.line, self.step = 0, self.cut.block

    def taps(self) -> list[tuple[int, Index]]:
        """Return the loops of a window, (rounds, elements apart), as `pack` orders the weights."""
        (kh, kw), (dh, dw) = self.shape.kernel, self.shape.dilation
        block, unit = self.cut.block, self.shape.unit
        rows = (kh, self.k.mul(dh, self.pitch))
        if dw == 1 or kw == 1:
            return [rows, (kw * block // unit, unit)]
        return [rows, (kw, dw * block), (block // unit, unit)]

    def products(
        self, source: ir.Value, at: Index, weights: Sequence[Index], pixels: int,
        acc: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the accumulators with the products of neighbouring channels."""
        k, unit, count = self.k, self.shape.unit, self.vectors
        panel, _, group = weights
        size, apart = unit * self.isa.lanes, self.shape.stride[1] * self.step
        columns = [k.read(self.w, [panel, group, j * size], size) for j in range(count)]
        out: list[ir.Value] = []
        for i in range(pixels):
            value = k.read(source, [k.add(at, i * apart)], unit)
            out += self.multiply(value, columns, acc[i * count : (i + 1) * count])
        return out

    # ---- planar images -----------------------------------------------------------------------

    def image_row(self, into: ir.Value, at: Index, y: Index, b: Index, strip: Strip) -> ir.Value:
        """Return the scratch with one row of the image; the channels of a pixel are neighbours."""
        if not self.shape.planar:
            return super().image_row(into, at, y, b, strip)
        k, s, block = self.k, self.shape, self.cut.block
        high, wide = self.extents.size
        into = self.zeros(into, at, k.mul(strip.left, block))
        at = k.add(at, k.mul(strip.left, block))
        lines = [
            k.mul(k.add(k.mul(k.add(k.mul(self.image, s.inputs), c), high), y), wide)
            for c in range(s.inputs)
        ]
        lines = [k.add(line, strip.begin) for line in lines]

        def some(p: Index, lanes: int, t: ir.Value) -> ir.Value:
            planes = [
                self.widened(k.read(self.x, [k.add(line, p)], lanes), lanes) for line in lines
            ]
            return k.write(self.interleaved(planes, lanes), t, [k.add(at, k.mul(p, block))])

        into = self.chunks(into, strip.used, some)
        at = k.add(at, k.mul(strip.used, block))
        return self.zeros(into, at, k.mul(strip.right, block))

    def interleaved(self, planes: Sequence[ir.Value], lanes: int) -> ir.Value:
        """Return pixels from a vector of each channel; channels that are filled up are 0."""
        k, block, bits = self.k, self.cut.block, self.stored.bits
        if block == 1:
            return planes[0]
        count = WORD // bits
        if block % count:
            none = k.splat(0, lanes, self.stored)
            found = [*planes, *[none] * (block - len(planes))]
            return self.woven(found, lanes)
        words: list[ir.Value] = []
        kind = k.vector_type(lanes, dtypes.INT32)
        for first in range(0, block, count):
            word = k.splat(0, lanes, dtypes.INT32)
            for i, plane in enumerate(planes[first : first + count]):
                wide = arith.ExtUIOp(kind, self.as_integer(plane, lanes)).result
                shift = k.splat(bits * i, lanes, dtypes.INT32)
                word = arith.OrIOp(word, arith.ShLIOp(wide, shift).result).result
            words.append(word)
        whole = self.woven(words, lanes)
        return vector.BitCastOp(k.vector_type(block * lanes, self.stored), whole).result

    def as_integer(self, v: ir.Value, lanes: int) -> ir.Value:
        """Return the bits of elements."""
        if not self.stored.is_float:
            return v
        bits = ir.IntegerType.get_signless(self.stored.bits)
        return vector.BitCastOp(ir.VectorType.get([lanes], bits), v).result

    def woven(self, parts: Sequence[ir.Value], lanes: int) -> ir.Value:
        """Return the first lane of each part, the second of each, and so on."""
        found, count = parts[0], 1
        for part in parts[1:]:
            # `found` has `count` elements of each place; `part` is as long, for the shuffle
            order = [
                i * count + j if j < count else lanes * count + i
                for i in range(lanes)
                for j in range(count + 1)
            ]
            found = vector.ShuffleOp(found, part, order).result
            count += 1
        return found
