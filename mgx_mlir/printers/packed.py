"""Which bytes of a program are pairs of 4-bit floats: MIGraphX's fp4x2_type, ui8 in the dialect."""

from __future__ import annotations

from collections.abc import Iterator

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS

# what gives its first operand's elements in another place, besides the views
_MOVES = ("identity", "contiguous", "layout", "gather", "reverse", "concat")


def packed_values(module: ir.Operation) -> set[ir.Value]:
    """The values that pack_fp4 gives or unpack_fp4 takes, through all that only moves them."""
    work: list[ir.Value] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "migraphx.pack_fp4":
            work.append(op.result)
        elif op.name == "migraphx.unpack_fp4":
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
    """The operands whose elements an operation moves."""
    name = op.name.removeprefix("migraphx.")
    cls = OPS.get(name)
    if cls is None or (cls.kind != "view" and name not in _MOVES):
        return []
    return list(op.operands) if name == "concat" else list(op.operands)[:1]
