"""The loops of one work-group of a convolution of 8-bit integers, whose sums are i32.

Four neighbouring channels of a pixel are multiplied together, or two, or one, as the processor has
an instruction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lower.cpu import dot
from mgx_mlir.passes.lower.cpu import dot_instructions as instructions
from mgx_mlir.passes.lower.cpu.convolution_shape import ConvPlan, ConvShape
from mgx_mlir.passes.lower.cpu.isa import Isa
from mgx_mlir.passes.lower.cpu.neighbour_convolution import NeighbourConvolutionLoops, rows_of
from mgx_mlir.passes.lower.cpu.workgroup_builder import Index


def pack(weights: np.ndarray, shape: ConvShape, plan: ConvPlan, isa: Isa) -> np.ndarray:
    """Weights [kh, kw, Ci, Co] in the order they are read: [panel, group of channels, width].

    Behind each panel stands what its sums begin with, where the instruction wants that.
    """
    flat = rows_of(weights, shape)
    start = instructions.byte_start(flat, isa, signed=shape.signed)
    packed = dot.pack(flat, plan.width, shape.unit)
    return instructions.with_start(packed, start, plan.width)


class ByteConvolutionLoops(NeighbourConvolutionLoops):
    """Builds the body."""

    stored = dtypes.INT8

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        signed = self.shape.signed
        # 128 more than the image, as the instruction wants it, so that the sums need not see to it
        self.shifted = signed and bool(self.isa.byte_dot) and not self.shape.in_place
        signed = signed and not self.shifted
        self.multiply = instructions.byte_products(self.k, self.isa, signed=signed)

    def border(self, lanes: int) -> ir.Value:
        """Return the zero point of the image."""
        value = self.shape.border + (128 if self.shifted else 0)
        return self.k.splat(value - 256 if value > 127 else value, lanes, dtypes.INT8)

    def widened(self, v: ir.Value, lanes: int) -> ir.Value:
        """Return elements of the image as they stand in the scratch."""
        if not self.shifted:
            return v
        return arith.XOrIOp(v, self.k.splat(-128, lanes, dtypes.INT8)).result

    def starts(self, panel: Index) -> list[ir.Value]:
        """Return what the sums of each register of a panel begin with."""
        k, lanes, unit = self.k, self.isa.lanes, self.shape.unit
        kind = k.vector_type(lanes, dtypes.INT32)
        if not (self.shape.signed and self.isa.byte_dot):
            return [k.splat(0, lanes, dtypes.INT32)] * self.vectors
        groups = int(np.prod(self.shape.kernel)) * self.cut.block // unit
        size = unit * lanes
        found = [k.read(self.w, [panel, groups, j * size], size) for j in range(self.vectors)]
        return [vector.BitCastOp(kind, v).result for v in found]
