"""auto_contiguous: a copy into row-major order after every result that is stored otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.views import Contiguous
from mgx_mlir.dialects.migraphx.views import Layout as LayoutOp
from mgx_mlir.programs.module_shapes import ModuleShapes
from mgx_mlir.programs.program_ir import functions
from mgx_mlir.rewrite.passes import Pass

# ops that define an order of elements
_ORDERS = (Contiguous, LayoutOp, Literal)


@dataclass(frozen=True)
class AutoContiguous(Pass):
    """Follow each op whose derived strides are not row-major by `contiguous`.

    Tensors are values here, so that nothing computed changes: the pass makes the copies visible
    that MIGraphX's own programs hold, for programs that are printed or written for it.
    """

    name: ClassVar[str] = "auto_contiguous"

    def run(self, module: ir.Operation) -> bool:
        layout = ModuleShapes(module)
        inserted = 0
        for function in functions(module):
            for block in function.regions[0].blocks:
                # in order: what comes after a contiguous sees its strides
                for view in list(block.operations):
                    inserted += self._follow(view.operation, layout)
        return inserted > 0

    @staticmethod
    def _follow(op: ir.Operation, layout: ModuleShapes) -> int:
        if op_class(op) is None or is_a(op, _ORDERS):
            return 0
        inserted = 0
        for result in op.results:
            t = TensorType.of(result)
            # an existing copy is enough
            used = any(not is_a(use.owner, Contiguous) for use in result.uses)
            if not used or not t.is_static or t.elements <= 1 or layout.shape(result).is_standard:
                continue
            with op.location, ir.InsertionPoint.after(op):
                copy = OPS["contiguous"](result)
            result.replace_all_uses_except(copy.result, copy.operation)
            inserted += 1
        return inserted
