"""Barriers between kernels, inside the compile worker: of no use once kernels are formed.

The lowering puts `util.optimization_barrier` between tensors that IREE must not fuse. IREE keeps it
to the end: what stands behind it on the host waits until what stands ahead has run, and each side
allocates by itself. A GPU's program waits for its device at each one then.

Behind IREE's phase `flow` every kernel is a dispatch, and nothing fuses any more: barriers of
tensors are taken out there. Those of scalars stay; they keep IREE from folding extents.

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

from typing import Any

_BARRIER = "util.optimization_barrier"


def drop(ir: Any, module: Any) -> int:
    """Take the barriers of tensors out of a module behind the phase `flow`; return how many."""
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
