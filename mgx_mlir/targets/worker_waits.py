"""Waits of the host ahead of queue operations, in the compile worker: CUDA's queue needs them.

IREE 3.13's CUDA driver lets an operation wait on the device for the one before. While the device is
behind, that corrupts the process's memory: a loop whose iterations append to a tensor, each by a
copy that waits for the copy before, ends the process. A fence that is signaled already does no such
harm. So ahead of such an operation the host waits, after IREE's phase `hal`:

    queue.copy wait(%fence)  ->  fence.await until([%fence]); queue.copy wait(%fence)

Allocations signal their fence at once, so what waits for them alone is left as it is. This file
imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

from typing import Any

_WAIT, _SIGNAL = 2, 3  # operand numbers of an operation of the queue
_AT_ONCE = ("hal.device.queue.alloca", "hal.device.queue.dealloca")  # the host does these itself
_QUEUE = (
    "hal.device.queue.barrier", "hal.device.queue.copy", "hal.device.queue.execute",
    "hal.device.queue.execute.indirect", "hal.device.queue.fill", "hal.device.queue.update",
)  # fmt: skip
_FOREVER = -1  # milliseconds


def add(ir: Any, module: Any) -> int:
    """Add waits to a module after the phase `hal`; return their number."""
    found = []

    def visit(op: Any) -> Any:
        if op.name in _QUEUE:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    waiting = [op for op in found if not _is_signaled(ir, op.operands[_WAIT])]
    with module.context, ir.Location.unknown():
        for op in waiting:
            _wait(ir, op)
    return len(waiting)


def _is_signaled(ir: Any, fence: Any) -> bool:
    """Return whether a fence is signaled where an operation waits for it, as far as the program
    says: no fence, one of an allocation, or a join of such."""
    owner = fence.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "util.null":
        return True
    if owner.name == "hal.fence.join":
        return all(_is_signaled(ir, v) for v in owner.operands)
    if owner.name != "hal.fence.create":
        return False
    signals = [
        use.owner.operation.name
        for use in fence.uses
        if use.owner.operation.name.startswith("hal.device.queue.")
        and use.operand_number == _SIGNAL
    ]
    return bool(signals) and all(name in _AT_ONCE for name in signals)


def _wait(ir: Any, op: Any) -> None:
    """Wait on the host for the fence of an operation, ahead of it."""
    kind = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(op):
        forever = ir.Operation.create(
            "arith.constant", results=[kind],
            attributes={"value": ir.IntegerAttr.get(kind, _FOREVER)},
        ).results[0]  # fmt: skip
        none = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
        status = ir.Operation.create(
            "hal.fence.await", results=[kind], operands=[forever, op.operands[_WAIT]],
            attributes={"flags": none},
        ).results[0]  # fmt: skip
        said = ir.StringAttr.get("failed to wait on timepoint")
        ir.Operation.create("util.status.check_ok", operands=[status], attributes={"message": said})


__all__ = ["add"]
