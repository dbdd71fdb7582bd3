"""Packed B of few bits: panels widened to scratch, or in registers for few rows."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.computed import Part, Rows, Scratch
from mgx_mlir.passes.lowering.cpu.matmul.digits import Digits, digit_sums
from mgx_mlir.passes.lowering.cpu.matmul.few_bits import UNIT, FewBits, Widening, direct_sums
from mgx_mlir.passes.lowering.cpu.matmul.instructions import products
from mgx_mlir.passes.lowering.cpu.matmul.panel import Panel, Tiles


@dataclass(frozen=True)
class WidenedB:
    """Codes, scales and zero points, if any."""

    k: WorkgroupBuilder
    isa: Isa
    form: FewBits
    width: int
    block: int  # depth that is widened to scratch at a time, 0: in registers only
    tensors: Sequence[ir.Value]

    @property
    def scratch(self) -> Scratch:
        return [((self.block, self.width), dtypes.FLOAT)] if self.block else []

    @property
    def widening(self) -> Widening:
        return Widening(self.k, self.isa, self.form, self.tensors)

    def panel(self, part: Part, scratch: Tiles) -> Panel:
        """Return the panel in scratch."""
        k, vectors = self.k, self.width // self.isa.lanes
        first = k.div(part.start, UNIT)
        packed = self.widening.packed(part.number, first, part.count, vectors, scratch[0])
        multiply = products(k, self.isa, dtypes.FLOAT)
        return Panel(k, packed, (), self.isa.lanes, vectors, multiply)

    def sums(self, rows: Rows, part: Part, digits: Digits | None) -> Tiles:
        """Return the sums of rows over all of the depth, by row and register.

        digits: those of the rows, None where codes are widened for these rows.
        """
        depth, vectors = rows.count, self.width // self.isa.lanes
        assert isinstance(depth, int)
        if digits is None:
            return direct_sums(self.widening, rows, part.number, depth, vectors)
        return digit_sums(self.widening, digits, rows.rows, part.number, depth, vectors)
