"""Values that stay in f32 where a program is brought to 16 bits.

* Sums of computed values that a norm reads, and the norm with its weights: the residual stream of a
  transformer.
* Angles: what sin and cos read. An angle of 60 in bf16 is off by 0.1.
* Elements that are moved to the program's results alone, such as the rows of a cache.
"""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.attention import ConcatPastPresent
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.movement import Concat
from mgx_mlir.dialects.migraphx.pointwise_binary import Add
from mgx_mlir.dialects.migraphx.pointwise_trig import Cos, Sin
from mgx_mlir.dialects.migraphx.reduce import Reduction
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.view_chains import VIEWS, VIEWS_AND_SLICE

_BEFORE_REDUCTION = 2  # pointwise ops between a sum and the reduction: a square, a conversion
_MOVES = (*VIEWS_AND_SLICE, Concat, ConcatPastPresent)


def wide_values(module: ir.Operation) -> list[ir.Operation]:
    """Return the ops that stay in f32.

    A sum has two operands of its own dims: a bias is none. The part after a sum ends at a dot. The
    part ahead of an angle ends at a dot that sums. Parts of moved elements end at what computes.
    """
    found = set[ir.Operation]()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_a(op, Kernel):
            return ir.WalkResult.SKIP
        if op in found:
            return ir.WalkResult.ADVANCE
        if _is_sum(op) and _is_reduced(op, _BEFORE_REDUCTION):
            _add(op, found)
        elif is_a(op, (Cos, Sin)):
            found.add(op)
            _add_angle(op.operands[0], found)
        elif op.name == "func.return":
            for v in op.operands:
                _add_moves(v, found)
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
    """Add an op, lookups that it sums, what is pointwise, reduced or viewed behind them, and the
    views of constants that these read.
    """
    todo = [op]
    for v in op.operands:
        while is_a(v.owner, VIEWS):
            v = v.owner.operands[0]
        if is_a(v.owner, Gather):
            todo.append(v.owner.operation)
    while todo:
        op = todo.pop()
        found.add(op)
        for v in op.operands:
            if is_constant(v):
                found.update(_views_of(v))
        for result in op.results:
            for use in result.uses:
                reader = use.owner.operation
                if reader not in found and is_a(reader, (Pointwise, Reduction, *VIEWS)):
                    todo.append(reader)


def _views_of(v: ir.Value) -> list[ir.Operation]:
    """Return the views between a value and its source."""
    views: list[ir.Operation] = []
    while is_a(v.owner, VIEWS):
        views.append(v.owner.operation)
        v = v.owner.operands[0]
    return views


def _add_angle(v: ir.Value, found: set[ir.Operation]) -> None:
    """Add what an angle is computed by."""
    todo = [v]
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, ir.Block) or owner.operation in found:
            continue
        sums = is_a(owner, Dot) and TensorType.of(owner.operands[0]).dims[-1] != 1
        if not sums and is_a(owner, (Pointwise, Dot, *_MOVES)):
            found.add(owner.operation)
            todo += owner.operands


def _add_moves(v: ir.Value, found: set[ir.Operation]) -> None:
    """Add the ops that move elements to a result, if one of them joins others."""
    todo, moves = [v], set[ir.Operation]()
    while todo:
        owner = todo.pop().owner
        if not isinstance(owner, ir.Block) and is_a(owner, _MOVES):
            moves.add(owner.operation)
            todo += owner.operands
    if any(is_a(op, (Concat, ConcatPastPresent)) for op in moves):
        found |= moves
