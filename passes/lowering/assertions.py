"""Assertions in branches and loops: their position, and the computations that must precede them.

IREE 3.13 schedules the ops before and after an assertion separately. In a branch or loop body, if
the second part also reads an outer value, it loses the dependency between the parts, and drops the
first (docs/iree-hazards.md, hazard 25). So an assertion is put before all computations where
possible; otherwise it waits for earlier computations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.iree import buffer_views

# host ops, which may be anywhere after their operands
_SCALARS = ("arith.", "hal.buffer_view.dim", "tensor.dim", "util.optimization_barrier")
# ops whose results need no computation, or are waited for already
_READY = ("arith.constant", "flow.tensor.alloca", "hal.tensor.import", "linalg.fill",
          "ml_program.global_load_const", "tensor.empty",
          "util.optimization_barrier")  # fmt: skip
_ALIASES = ("flow.tensor.tie_shape", "tensor.cast", "tensor.collapse_shape", "tensor.expand_shape")


class InsertionPoints:
    """Insertion points of assertions in a function's branches and loops, in creation order."""

    def __init__(self) -> None:
        # the op before which to insert, by the last op needed (None: the start of the block)
        self._ends: dict[tuple[ir.Block, ir.Operation | None], ir.Operation] = {}

    def first(self, block: ir.Block, values: Iterable[ir.Value]) -> ir.InsertionPoint:
        """Return the first insertion point of a block at which all of `values` are known.

        Scalars are moved there.
        """
        return ir.InsertionPoint(self._end(block, self._last(block, values)))

    def _end(self, block: ir.Block, behind: ir.Operation | None) -> ir.Operation:
        if (block, behind) not in self._ends:
            begin = ir.InsertionPoint.at_block_begin(block)
            with begin if behind is None else ir.InsertionPoint.after(behind):
                made = arith.ConstantOp(ir.IndexType.get(), 0).operation
            self._ends[block, behind] = made
        return self._ends[block, behind]

    def _last(self, block: ir.Block, values: Iterable[ir.Value]) -> ir.Operation | None:
        """Return the last op of a block, scalars left out, that `values` come from."""
        found: ir.Operation | None = None
        for value in values:
            owner = value.owner
            if isinstance(owner, ir.Block) or owner.operation.block != block:
                continue
            last: ir.Operation | None = owner.operation
            if owner.name.startswith(_SCALARS) and not _is_tensor(value):
                op = owner.operation
                last = self._last(block, op.operands)
                end = self._end(block, last)
                if end.is_before_in_block(op):
                    op.move_before(end)
            if last is not None and (found is None or found.is_before_in_block(last)):
                found = last
        return found


def wait(e: LoweringContext, block: ir.Block, *, outermost: bool = False) -> None:
    """Wait at an assertion for values that a block computes before and reads after it.

    An inner branch or loop with an assertion counts as one; in a function's outermost block only
    such ops count.
    """
    ops = [view.operation for view in block.operations]
    at = {op: i for i, op in enumerate(ops)}
    for i, mark in enumerate(ops):
        if not _asserts(mark) or (outermost and mark.name == "cf.assert"):
            continue
        kept: dict[ir.Value, ir.Value] = {}
        for op in ops[:i]:
            for value in op.results:
                late = [u for u in value.uses if _number(u.owner, block, at) >= i]
                if not late or not _is_computed(value):
                    continue
                with ir.InsertionPoint(mark):
                    done = _done(e, value, kept)
                for use in late:
                    use.owner.operands[use.operand_number] = done


def _done(e: LoweringContext, value: ir.Value, kept: dict[ir.Value, ir.Value]) -> ir.Value:
    """Return a value after waiting for its computation.

    A view is rebuilt from its awaited source.
    """
    if value not in kept:
        op = value.owner.operation
        if op.name in _ALIASES and _is_computed(op.operands[0]):
            source = _done(e, op.operands[0], kept)  # before its view
            again = op.clone()
            again.operands[0] = source
            kept[value] = again.result
        else:
            kept[value] = buffer_views.settled(e, value)
    return kept[value]


def _number(op: ir.Operation, block: ir.Block, at: Mapping[ir.Operation, int]) -> int:
    """Return the index in a block of the op that is or holds `op`.

    It is -1 for a tensor.dim, and for ops that `wait` made.
    """
    op = op.operation
    if op.name == "tensor.dim":
        return -1
    while op.block != block:
        op = op.parent.operation
    return at.get(op, -1)


def _asserts(op: ir.Operation) -> bool:
    if op.name == "cf.assert":
        return True
    if not op.name.startswith("scf."):
        return False
    blocks: Sequence[ir.Block] = [b for region in op.regions for b in region.blocks]
    return any(_asserts(inner.operation) for b in blocks for inner in b.operations)


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _is_computed(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or not _is_tensor(value) or owner.name in _READY:
        return False
    return owner.name not in _ALIASES or _is_computed(owner.operation.operands[0])
