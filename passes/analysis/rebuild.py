"""The same op on other operands."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType


def rebuild(op: ir.OpView, operands: list[ir.Value], out: TensorType) -> ir.Value:
    """Build an op of one result again, with its attributes."""
    found = op.operation.attributes
    attributes = {name: found[name] for name in list(found)}
    return ir.Operation.create(
        op.operation.name, results=[out.mlir()], operands=operands, attributes=attributes
    ).result
