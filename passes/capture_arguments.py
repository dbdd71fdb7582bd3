"""capture_arguments: mark the values whose ranges a calibration must see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Kernel, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.buffers import Capture
from mgx_mlir.passes.analysis.retype import ALL, ops_field, ops_option
from mgx_mlir.rewrite.passes import Pass
from mgx_mlir.rewrite.pattern import op_names


@dataclass(frozen=True)
class CaptureArguments(Pass):
    """Put a `capture` before each float operand of the listed ops, numbered in order.

    No callback is part of the program: a run shows each op and its results to its trace
    (`Interpreter.run(trace=...)`), and the trace tells the captures by their `ins_index`.
    quantize_8bits takes what was found and replaces them.
    """

    name: ClassVar[str] = "capture_arguments"
    ops: tuple[str, ...] = ops_field(("dot", "convolution"))

    def __post_init__(self) -> None:
        ops_option(self.ops)

    def run(self, module: ir.Operation) -> bool:
        names = {f"migraphx.{name}" for name in ops_option(self.ops) if name != ALL}
        present = set(op_names(module))
        if ALL not in self.ops and names.isdisjoint(present):
            return False
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if is_a(op, Kernel):
                return ir.WalkResult.SKIP
            every = ALL in self.ops and op.name.startswith("migraphx.")
            if (every and op.name not in _NEVER) or op.name in names:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.walk(visit, ir.WalkOrder.PRE_ORDER)
        index = 0
        for op in found:
            with op.location, ir.InsertionPoint(op):
                for i, v in enumerate(op.operands):
                    owner = v.owner
                    seen = is_a(owner, Capture)
                    if seen or not TensorType.of(v).dtype.is_float:
                        continue
                    op.operands[i] = OPS["capture"](v, ins_index=index).operation.result
                    index += 1
        return index > 0


# what has no arithmetic of its own, or a region
_NEVER = frozenset(
    f"migraphx.{name}" for name in ("convert", "capture", "if", "loop", "yield", "select_module")
)
