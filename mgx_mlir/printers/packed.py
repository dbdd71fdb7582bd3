"""Bytes of a program that are pairs of 4-bit floats: MIGraphX's fp4x2_type, ui8 in the dialect."""

from __future__ import annotations

from collections.abc import Iterator

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import ViewOp, is_a
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.movement import Concat, Reverse
from mgx_mlir.dialects.migraphx.quant import PackFp4, UnpackFp4

# ops that move their first operand's elements
_MOVES = (ViewOp, Gather, Reverse, Concat)


def packed_values(module: ir.Operation) -> set[ir.Value]:
    """Return the values that pack_fp4 returns or unpack_fp4 takes, also through data movement."""
    work: list[ir.Value] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_a(op, PackFp4):
            work.append(op.result)
        elif is_a(op, UnpackFp4):
            work.append(op.operands[0])
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    found: set[ir.Value] = set()
    while work:
        value = work.pop()
        if value not in found:
            found.add(value)
            work += _same_elements(value)
    return found


def _same_elements(value: ir.Value) -> Iterator[ir.Value]:
    owner = value.owner
    if not isinstance(owner, ir.Block):
        yield from _moved(owner.operation)
    for use in value.uses:
        user = use.owner.operation
        if value in _moved(user):
            yield from user.results


def _moved(op: ir.Operation) -> list[ir.Value]:
    """Return the operands whose elements an operation moves."""
    if not is_a(op, _MOVES):
        return []
    return list(op.operands) if is_a(op, Concat) else list(op.operands)[:1]
