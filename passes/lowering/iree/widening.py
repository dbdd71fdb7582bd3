"""Barriers between a widening loop and its readers at computed indices (hazard 49).

IREE clones an elementwise loop whose result has more bits than its input into each dispatch that
reads it, to move fewer bytes. If that reads at computed indices, the dispatch keeps the whole
result on its stack, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.passes.lowering.iree.iree_ops import barrier, tied

_RENAMING = (
    "tensor.cast",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.reshape",
    "flow.tensor.tie_shape",
)


def fence_widening_loops(module: ir.Module) -> None:
    """Put a barrier after each such loop outside of dispatch regions."""
    for op in list(_widening(module.operation)):
        if any(_reads_anywhere(user, op.block) for user in _readers(op.results[0])):
            _fence(op)


def _widening(root: ir.Operation) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith(("flow.dispatch", "flow.executable")):
            return ir.WalkResult.SKIP
        if op.name == "linalg.generic" and len(op.results) == 1 and _widens(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return iter(found)


def _widens(op: ir.Operation) -> bool:
    """Return whether the result of a parallel loop has more bits than each of its inputs."""
    kinds = [str(a) for a in ir.ArrayAttr(op.attributes["iterator_types"])]
    if any("reduction" in k for k in kinds):
        return False
    *inputs, out = (ir.RankedTensorType(v.type).element_type for v in op.operands)
    return bool(inputs) and max(map(_bits, inputs)) < _bits(out)


def _bits(kind: ir.Type) -> int:
    return getattr(kind, "width", 64)  # an index has no width


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    for use in value.uses:
        user = use.owner.operation
        if user.name in _RENAMING:
            yield from _readers(user.results[0])
        else:
            yield user


def _reads_anywhere(user: ir.Operation, block: ir.Block) -> bool:
    """Return whether a reader is captured by a body, or combines values at given indices."""
    return user.block != block or user.name.startswith("iree_linalg_ext.")


def _fence(op: ir.Operation) -> None:
    value, init = op.results[0], op.operands[len(op.operands) - 1]
    kind = ir.RankedTensorType(value.type)
    with ir.InsertionPoint.after(op), op.location:
        kept = barrier(value)
        dynamic = [i for i in range(kind.rank) if kind.is_dynamic_dim(i)]
        at = [arith.ConstantOp(ir.IndexType.get(), i).result for i in dynamic]
        made = tied(kept, [tensor.DimOp(init, i).result for i in at])
    value.replace_all_uses_except(made, [kept.owner.operation, made.owner.operation])
