"""Constant matrices that an operand repeats along leading dims, as several dots have them."""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast


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
