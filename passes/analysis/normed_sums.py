"""Sums of computed values that a norm reads, and the norm: the residual stream of a transformer."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.pointwise_binary import Add
from mgx_mlir.dialects.migraphx.reduce import Reduction
from mgx_mlir.passes.analysis.view_chains import VIEWS

_BEFORE_REDUCTION = 2  # pointwise ops between a sum and the reduction: a square, a conversion


def normed_sums(module: ir.Operation) -> list[ir.Operation]:
    """Return the sums that norms read, what they sum of tables, and what is pointwise behind them.

    A sum has two operands of its own dims: a bias is none. The part after a sum ends at a dot.
    """
    found = set[ir.Operation]()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_a(op, Kernel):
            return ir.WalkResult.SKIP
        if op in found or (_is_sum(op) and _is_reduced(op, _BEFORE_REDUCTION)):
            _add(op, found)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return list(found)


def _is_sum(op: ir.Operation) -> bool:
    if not is_a(op, Add):
        return False
    dims = TensorType.of(op.results[0]).dims
    return all(_source_dims(v) == dims for v in op.operands)


def _source_dims(v: ir.Value) -> tuple[int, ...]:
    """Return the dims of a value ahead of its broadcast."""
    owner = v.owner
    if not isinstance(owner, ir.Block) and owner.name.rpartition(".")[2].endswith("broadcast"):
        v = owner.operands[0]
    return TensorType.of(v).dims


def _is_reduced(op: ir.Operation, steps: int) -> bool:
    """Return whether a reduction reads a result, through `steps` pointwise ops at most."""
    readers = [use.owner.operation for use in op.results[0].uses]
    if any(is_a(r, Reduction) for r in readers):
        return True
    return steps > 0 and any(is_a(r, Pointwise) and _is_reduced(r, steps - 1) for r in readers)


def _add(op: ir.Operation, found: set[ir.Operation]) -> None:
    """Add an op, lookups that it sums, and what is pointwise, reduced or viewed behind it."""
    todo = [op]
    for v in op.operands:
        while is_a(v.owner, VIEWS):
            v = v.owner.operands[0]
        if is_a(v.owner, Gather):
            found.add(v.owner.operation)
    while todo:
        op = todo.pop()
        found.add(op)
        for result in op.results:
            for use in result.uses:
                reader = use.owner.operation
                if reader not in found and is_a(reader, (Pointwise, Reduction, *VIEWS)):
                    todo.append(reader)
