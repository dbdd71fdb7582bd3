"""Guards of empty launches and allocations, in the compile worker: CUDA refuses both.

IREE's HIP driver skips a launch of 0 workgroups. Its CUDA driver does not, CUDA refuses it, and the
device is lost for all later programs of the process. A transient buffer of 0 bytes cannot be freed
either. Empty tensors with dynamic dims cause both. So after IREE's phase `hal`, where launches and
allocations are operations, the program gets guards:

    dispatch workgroups(x, y, z)  ->  if x != 0 and y != 0 and z != 0: dispatch
    fill, copy of n bytes         ->  if n != 0: fill, copy
    alloca of n bytes             ->  alloca of max(n, 1) bytes

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# operand numbers of a command's counts
_COMMANDS = {
    "hal.command_buffer.dispatch": (3, 4, 5),  # workgroups along x, y and z
    "hal.command_buffer.fill_buffer": (3,),  # bytes
    "hal.command_buffer.copy_buffer": (5,),
}
_ALLOCATIONS = ("hal.device.queue.alloca", "hal.allocator.allocate")  # the size comes last
_NE = 1  # predicate of arith.cmpi


def guard(ir: Any, module: Any) -> int:
    """Guard operations that may be empty in a module after the phase `hal`; return their number."""
    found = []

    def visit(op: Any) -> Any:
        if op.name in _COMMANDS or op.name in _ALLOCATIONS:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    changed = 0
    with module.context, ir.Location.unknown():
        for op in found:
            if op.name in _ALLOCATIONS:
                changed += _at_least_one(ir, op)
            else:
                changed += _conditional(ir, op, [op.operands[i] for i in _COMMANDS[op.name]])
    return changed


def _constant(ir: Any, value: Any) -> int | None:
    """Return the constant of a value, None where it is dynamic."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def _number(ir: Any, type_: Any, value: int) -> Any:
    made = ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": ir.IntegerAttr.get(type_, value)}
    )
    return made.results[0]


def _conditional(ir: Any, op: Any, counts: Sequence[Any]) -> bool:
    """Wrap a command in a condition, unless all its counts are constants other than 0."""
    unknown = [v for v in counts if not _constant(ir, v)]
    if not unknown:
        return False
    bit = ir.IntegerType.get_signless(1)
    with ir.InsertionPoint(op):
        holds = None
        for value in unknown:
            zero = _number(ir, value.type, 0)
            predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _NE)
            some = ir.Operation.create(
                "arith.cmpi", results=[bit], operands=[value, zero],
                attributes={"predicate": predicate},
            ).results[0]  # fmt: skip
            holds = some if holds is None else ir.Operation.create(
                "arith.andi", results=[bit], operands=[holds, some]
            ).results[0]  # fmt: skip
        branch = ir.Operation.create("scf.if", operands=[holds], regions=2)
        body = branch.regions[0].blocks.append()
    with ir.InsertionPoint(body):
        end = ir.Operation.create("scf.yield")
    op.move_before(end)
    return True


def _at_least_one(ir: Any, op: Any) -> bool:
    """Allocate at least one byte where an allocation may be empty."""
    at = len(op.operands) - 1
    size = op.operands[at]
    if _constant(ir, size):
        return False
    with ir.InsertionPoint(op):
        one = _number(ir, size.type, 1)
        op.operands[at] = ir.Operation.create(
            "arith.maxui", results=[size.type], operands=[size, one]
        ).results[0]
    return True


__all__ = ["guard"]
