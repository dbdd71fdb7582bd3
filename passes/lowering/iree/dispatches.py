"""Dispatches of the backend's flow dialect: which operands are the extents of their results."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.iree.iree_ops import segments_of

# the segment of the operands that holds the extents of all results
_SEGMENT = {"flow.dispatch.region": 0, "flow.dispatch.workgroups": 3, "flow.dispatch": 3}


def extent(op: ir.Operation, result: ir.Value, axis: int) -> ir.Value | None:
    """Return the operand that is a result's run-time extent; None where it is fixed, or `op` is no
    dispatch."""
    part = _SEGMENT.get(op.name)
    if part is None:
        return None
    at = sum(segments_of(op)[:part])
    for r in op.results:
        kind = ir.ShapedType(r.type)
        if r == result:
            if not kind.is_dynamic_dim(axis):
                return None
            return op.operands[at + sum(kind.is_dynamic_dim(i) for i in range(axis))]
        at += sum(kind.is_dynamic_dim(i) for i in range(kind.rank))
    return None
