"""Instructions of MIGraphX's API: their values, operands and result types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.programs.migraphx_names import is_tuple

# value of an instruction: an argument or a result, or an operation seen as a tuple
Instruction: TypeAlias = ir.Value | ir.Operation


def instruction_of(op: ir.Operation) -> Instruction:
    """Return the instruction of an operation."""
    op = op.operation  # the op of an op view, which is another object
    return op if is_tuple(op) or not len(op.results) else op.results[0]


def as_value(x: Instruction) -> ir.Value:
    """Return the value of an instruction; a tuple of one element is that element."""
    if isinstance(x, ir.Value):
        return x
    if len(x.results) == 1:
        return x.result
    raise ShapeError(
        f"expected a tensor, got the tuple of '{x.name}'", notes=["use get_tuple_elem"]
    )


def as_operand(cls: type[Op], index: int, x: Instruction) -> ir.Value | None:
    """Return operand `index` of an op; None for an undefined optional one."""
    value = as_value(x)
    owner = value.owner
    if isinstance(owner, ir.Block):
        return value
    if cls.mnemonic == "rnn_last_cell_output" and mnemonic(owner) == "lstm":
        return owner.results[1]
    absent = mnemonic(owner) == "undefined" and _is_optional(cls, index)
    return None if absent else value


def _is_optional(cls: type[Op], index: int) -> bool:
    arities = [g.arity for g in cls.OPERANDS]
    return index < len(arities) and arities[index] == "optional"


def result_types(
    cls: type[Op],
    groups: Sequence[Sequence[ir.Value]],
    keywords: Mapping[str, Any],
    ends: Sequence[Sequence[ir.Value]],
) -> list[TensorType]:
    """Return the result types of an operation with regions, from its modules' returns."""
    yields = [[TensorType.of(v) for v in values] for values in ends]
    if cls.mnemonic == "if":
        then, other = yields
        fits = len(then) == len(other) and all(
            a.rank == b.rank for a, b in zip(then, other, strict=True)
        )
        if not fits:
            raise ShapeError("the modules of 'if' return different types")
        return [
            a.with_dims(x if x == y else DYN for x, y in zip(a.dims, b.dims, strict=True))
            for a, b in zip(then, other, strict=True)
        ]
    if cls.mnemonic == "loop":
        carried = len(groups[-1])
        padded = bool(keywords.get("padded"))
        first = int(keywords.get("max_iterations", 10)) if padded else DYN
        state, scans = yields[0][1 : 1 + carried], yields[0][1 + carried :]
        return [*state, *(t.with_dims((first, *t.dims)) for t in scans)]
    return yields[0]


__all__ = ["Instruction", "as_operand", "as_value", "instruction_of", "result_types"]
