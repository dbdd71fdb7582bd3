"""capture_arguments: mark the values whose ranges a calibration must see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.buffers import Capture
from mgx_mlir.dialects.migraphx.control import If, Loop, SelectModule, Yield
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.passes.analysis.retype import named_ops, ops_field, ops_option
from mgx_mlir.rewrite.passes import Pass

# ops without arithmetic, or with a region
_NEVER = (Convert, Capture, If, Loop, Yield, SelectModule)


@dataclass(frozen=True)
class CaptureArguments(Pass):
    """Put a `capture` before each float operand of the listed ops, numbered in order.

    The program has no callbacks: the interpreter passes each op and its results to a trace
    (`Interpreter.run(trace=...)`), which identifies captures by their `ins_index`. quantize_8bits
    replaces them, with the ranges that were found.
    """

    name: ClassVar[str] = "capture_arguments"
    ops: tuple[str, ...] = ops_field(("dot", "convolution"))

    def __post_init__(self) -> None:
        ops_option(self.ops)

    def run(self, module: ir.Operation) -> bool:
        index = 0
        for op in named_ops(module, self.ops, _NEVER):
            with op.location, ir.InsertionPoint(op):
                for i, v in enumerate(op.operands):
                    if is_a(v.owner, Capture) or not TensorType.of(v).dtype.is_float:
                        continue
                    op.operands[i] = OPS["capture"](v, ins_index=index).operation.result
                    index += 1
        return index > 0
