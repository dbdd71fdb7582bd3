"""The loops of one work-group of a convolution of bf16, whose sums are f32.

Two neighbouring channels of a pixel are multiplied together: twice as much an instruction as of
f32, from half the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.matmul import dot
from mgx_mlir.passes.lowering.cpu.matmul import dot_instructions as instructions
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvPlan, ConvShape
from mgx_mlir.passes.lowering.cpu.windows.neighbour_convolution import (
    NeighbourConvolutionLoops,
    rows_of,
)


def pack(weights: np.ndarray, shape: ConvShape, plan: ConvPlan) -> np.ndarray:
    """Weights [kh, kw, Ci, Co] in the order they are read: [panel, pair of channels, width]."""
    return dot.pack(rows_of(weights, shape), plan.width, shape.unit)


class PairConvolutionLoops(NeighbourConvolutionLoops):
    """Builds the body."""

    stored = dtypes.BF16

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.multiply = instructions.pair_products(self.k, self.isa)

    def border(self, lanes: int) -> ir.Value:
        """Return zeros."""
        return self.k.splat(0.0, lanes, dtypes.BF16)

    def widened(self, v: ir.Value, lanes: int) -> ir.Value:
        """Return elements of the image as they are: the instruction widens them."""
        return v
