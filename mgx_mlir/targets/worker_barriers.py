"""Removal of barriers between kernels, in the compile worker.

The lowering puts `util.optimization_barrier` between tensors that IREE must not fuse. IREE keeps
them to the end: host code after a barrier waits for the work before it, and each side allocates
separately. So a GPU's program would synchronize at each one. After IREE's phase `flow` every kernel
is a dispatch and nothing is fused, so barriers of tensors are removed there. Barriers of scalars
stay; they keep IREE from folding extents.

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

from typing import Any

_BARRIER = "util.optimization_barrier"


def drop(ir: Any, module: Any) -> int:
    """Remove the barriers of tensors from a module after the phase `flow`; return their number."""
    found = []

    def visit(op: Any) -> Any:
        if op.name == _BARRIER and all(isinstance(r.type, ir.RankedTensorType) for r in op.results):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for op in found:
        for result, operand in zip(op.results, op.operands, strict=True):
            result.replace_all_uses_with(operand)
        op.erase()
    return len(found)


__all__ = ["drop"]
