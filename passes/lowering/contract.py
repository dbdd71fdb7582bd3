"""The contract between the passes and the lowering: the form of a program that can be lowered.

Passes of the target's pipeline have run (passes/pipelines.py). Then each op of the program is a
literal, a kernel (an op with a body: FusedReduce, PointwiseKernel, FusedConcat, Group), a view, or
an op with a lowering; a kernel's body reads its arguments alone. docs/design/31-kernel-rules.md
states what the rules may assume beyond that, and which test holds each promise.
"""

from __future__ import annotations

from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Kernel, is_a
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.registry import LOWERINGS, REFUSED

_OWN = ("literal", "yield", "dimensions_of")  # lowered by module.py


def check_lowerable(block: ir.Block, target: str) -> None:
    """Check that every op of a program can be lowered.

    Raises CompileError that names all ops without a lowering, with their source nodes.
    """
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("migraphx.") and not _is_known(op):
            texts = {k: str(op.attributes[k]).strip('"') for k in op.attributes}
            reason = REFUSED.get(op.name[9:], "it has no lowering yet").format_map(texts)
            found.append(f"{op.location}: '{op.name}' op cannot be compiled: {reason}")
        return ir.WalkResult.ADVANCE

    block.owner.operation.walk(visit)
    if found:
        raise CompileError(f"{len(found)} operations cannot be compiled for {target}", notes=found)


def _is_known(op: ir.Operation) -> bool:
    short = op.name[9:]
    if short in LOWERINGS or short in views.VIEWS or short in _OWN or is_a(op, Kernel):
        return True
    return getattr(OPS.get(short), "scalar", None) is not None
