"""Topological order of operations in a block, from the results back."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir


def depth_first(end: ir.Operation, block: ir.Block) -> Sequence[ir.Operation]:
    """Return the operations of `block` that `end` depends on, operands first."""
    order: list[ir.Operation] = []
    state: dict[ir.Operation, bool] = {}
    stack = [end]
    while stack:
        operation = stack[-1]
        if state.get(operation):
            stack.pop()
            continue
        if operation in state:
            stack.pop()
            state[operation] = True
            if operation != end:
                order.append(operation)
            continue
        state[operation] = False
        for value in reversed(_needed(operation)):
            owner = value.owner
            if isinstance(owner, ir.Block):
                continue
            owner = owner.operation  # an op view is a different dict key than its operation
            if owner.block == block and owner not in state:
                stack.append(owner)
    order += [v.operation for v in block.operations if v.operation not in state]
    return order


def _needed(operation: ir.Operation) -> list[ir.Value]:
    """Return the operands of an operation, and the values that its regions capture."""
    found = list(operation.operands)

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    for region in operation.regions:
        for b in region.blocks:
            for view in b.operations:
                view.operation.walk(visit)
    return found
