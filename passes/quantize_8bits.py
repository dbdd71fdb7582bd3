"""quantize_8bits: round captured values to 8 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import PipelineError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.buffers import Capture
from mgx_mlir.passes.analysis.retype import type_option
from mgx_mlir.programs.build import Builder
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.pattern import op_names

UNCALIBRATED = 64.0  # the factor of a value without calibration


@dataclass(frozen=True)
class Quantize8bits(Pass):
    """Replace each `capture` by a quantizelinear and a dequantizelinear.

    The capture with `ins_index` i takes `scales[i]`, by which values are multiplied (127 over
    the largest magnitude; of f8, its largest value over that), and `shifts[i]`, the zero point:
    64 and 0 where the list ends before. The pairs round computed values; simplify_qdq forms 8-bit
    matmuls and convolutions from them. f16 and bf16 values are quantised in f32.
    """

    name: ClassVar[str] = "quantize_8bits"
    precision: str = option("int8", "int8, uint8 or an f8 type")
    scales: tuple[float, ...] = option((), "the factor of each captured value")
    shifts: tuple[float, ...] = option((), "the zero point of each captured value")

    def __post_init__(self) -> None:
        target = type_option(self.precision)
        if target.size != 1 or target.is_bool:
            raise PipelineError(f"precision expected int8, uint8 or an f8 type, got {target}")
        if not all(0 < s < float("inf") for s in self.scales):
            raise PipelineError(
                f"scales expected positive, finite numbers, got {list(self.scales)}"
            )

    def run(self, module: ir.Operation) -> bool:
        if Capture.OPERATION_NAME not in op_names(module):
            return False
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if is_a(op, Capture):
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.walk(visit)
        b = Builder()
        for op in found:
            with op.location, ir.InsertionPoint(op):
                op.result.replace_all_uses_with(self._pair(b, op))
            op.erase()
        return True

    def _pair(self, b: Builder, op: ir.Operation) -> ir.Value:
        x = op.operands[0]
        dtype = TensorType.of(x).dtype
        if not dtype.is_float:
            return x
        target = type_option(self.precision)
        index: int = op.opview.ins_index
        factor = self.scales[index] if index < len(self.scales) else UNCALIBRATED
        shift = self.shifts[index] if index < len(self.shifts) else 0.0
        wide = dtype if dtype.size >= 4 else dtypes.FLOAT
        value = x if wide is dtype else b.op("convert", x, target_type=wide)
        scale = _like(b, np.array(1 / factor, wide.np), value)
        zero = None
        if target.is_integer:
            info = np.iinfo(target.np)
            zero = _like(b, np.array(np.clip(round(shift), info.min, info.max), target.np), value)
        q = b.op("quantizelinear", value, scale, zero, out_type=target)
        out = b.op("dequantizelinear", q, scale, zero)
        return out if wide is dtype else b.op("convert", out, target_type=dtype)


def _like(b: Builder, number: np.ndarray, x: ir.Value) -> ir.Value:
    """Build one number at the dims of `x`, static or not."""
    t = TensorType.of(x)
    if not t.rank:
        return b.literal(number)
    if t.is_static:
        return b.multibroadcast(b.literal(number), t.dims)
    return b.op("multibroadcast", [b.literal(number), x])
