"""Sources of broadcasts: a value at its dims, and a constant matrix along leading dims."""

from __future__ import annotations

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast, Scalar
from mgx_mlir.rewrite.pattern import defined_by


@dataclass(frozen=True)
class Repeated:
    """A literal, and the broadcasts that repeat it along leading dims, from the operand down."""

    literal: ir.Value
    broadcasts: tuple[ir.Operation, ...] = ()

    def of(self, value: ir.Value) -> ir.Value:
        """Build the operand of another value of the literal's type at the insertion point."""
        for op in reversed(self.broadcasts):
            made = op.clone()
            made.operands[0] = value
            value = made.results[0]
        return value


def repeated(operand: ir.Value) -> Repeated | None:
    """Return the literal whose elements an operand repeats as a whole; None where it is none."""
    found: list[ir.Operation] = []
    value = operand
    while not isinstance(value.owner, ir.Block):
        if literals.is_literal(value):
            return Repeated(value, tuple(found))
        if not is_a(value.owner, Multibroadcast):
            return None
        below = value.owner.operation.operands[0]
        own, whole = TensorType.of(below).dims, TensorType.of(value).dims
        if own != whole[len(whole) - len(own) :]:
            return None
        found.append(value.owner.operation)
        value = below
    return None


def repeated_dims(v: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
    """Return the source of a broadcast, and its dims at their positions in the result."""
    view = defined_by(v, BroadcastOp)
    if view is None or len(view.operation.operands) != 1:
        return None
    x = view.operation.operands[0]
    t, rank = TensorType.of(x), TensorType.of(v).rank
    if not t.is_static or 0 in t.dims:
        return None
    if is_a(view, Scalar) or t.elements == 1:
        return x, (1,) * rank
    if is_a(view, Broadcast):
        return x, (*[1] * view.axis, *t.dims, *[1] * (rank - view.axis - t.rank))
    return x, (*[1] * (rank - t.rank), *t.dims)
