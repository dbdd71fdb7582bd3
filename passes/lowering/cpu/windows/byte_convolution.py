"""The loops of one work-group of a convolution of 8-bit integers, whose sums are i32.

Four neighbouring channels of a pixel are multiplied together, or two, or one, as the processor has
an instruction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index
from mgx_mlir.passes.lowering.cpu.matmul import dot
from mgx_mlir.passes.lowering.cpu.matmul.byte_panels import BytePanels
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvPlan, ConvShape
from mgx_mlir.passes.lowering.cpu.windows.neighbour_convolution import (
    NeighbourConvolutionLoops,
    rows_of,
)


def panels_of(shape: ConvShape, width: int, isa: Isa) -> BytePanels:
    """Return the layout of the weights: one loop goes through a row of taps, or through one tap."""
    kh, kw = shape.kernel
    pixel = shape.filled // shape.unit
    row = 1 if shape.dilation[1] != 1 else kw
    return BytePanels(isa, shape.signed, width, kh * kw * pixel, row * pixel)


def pack(weights: np.ndarray, shape: ConvShape, plan: ConvPlan, isa: Isa) -> np.ndarray:
    """Weights [kh, kw, Ci, Co] in the order they are read: [panel, group of channels, width]."""
    flat = rows_of(weights, shape)
    packed = dot.pack(flat, plan.width, shape.unit)
    return panels_of(shape, plan.width, isa).finished(packed, flat)


class ByteConvolutionLoops(NeighbourConvolutionLoops):
    """Builds the body."""

    stored = dtypes.INT8

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.weights = panels_of(self.shape, self.cut.width, self.isa)
        # with the sign that the instruction wants, so that the sums need not see to it
        self.shift = 0 if self.shape.in_place else self.weights.shift

    def border(self, lanes: int) -> ir.Value:
        """Return the zero point of the image."""
        value = self.shape.border + self.shift
        return self.k.splat(value - 256 if value > 127 else value, lanes, dtypes.INT8)

    def widened(self, v: ir.Value, lanes: int) -> ir.Value:
        """Return elements of the image as they stand in the scratch."""
        if not self.shift:
            return v
        return arith.XOrIOp(v, self.k.splat(-128, lanes, dtypes.INT8)).result

    def starts(self, panel: Index) -> list[ir.Value]:
        """Return what the sums of each register of a panel begin with."""
        return self.weights.starts(self.k, self.w, panel)

    def sums(
        self, source: ir.Value, base: Index, panel: Index, b: Index, pixels: int,
        init: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the accumulators after all taps; there is one block of channels."""
        k, apart = self.k, self.shape.stride[1] * self.step
        *outer, (_, unit) = self.taps()

        def nest(level: int, at: Index, segment: Index, acc: list[ir.Value]) -> list[ir.Value]:
            if level == len(outer):

                def neighbours(place: Index) -> list[ir.Value]:
                    first = k.add(at, k.mul(place, unit))
                    size = self.shape.unit
                    return [k.read(source, [k.add(first, i * apart)], size) for i in range(pixels)]

                shifted = bool(self.shift)
                return self.weights.added(
                    k, self.w, panel, segment, neighbours, acc, shifted=shifted
                )
            count, stride = outer[level]
            inner = math.prod(n for n, _ in outer[level + 1 :])

            def one(i: Index, acc: list[ir.Value]) -> list[ir.Value]:
                where = k.add(at, k.mul(i, stride))
                return nest(level + 1, where, k.add(segment, k.mul(i, inner)), acc)

            return self.each(0, count, 1, acc, one)

        return nest(0, base, 0, init)
