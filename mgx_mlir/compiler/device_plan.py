"""Device memory of a compiled program, from the backend's plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import ViewOp, is_a
from mgx_mlir.programs.program_ir import DevicePlan, ProgramIR, entry_block
from mgx_mlir.programs.signature import Signature
from mgx_mlir.targets.base import Executable

_ALIGNMENT = 64  # bytes between tensors that share a piece of memory


def device_plan(
    program: ProgramIR,
    signature: Signature,
    executable: Executable,
    params: Mapping[str, np.ndarray],
) -> DevicePlan:
    """Return the device buffers of a program: scratch memory and weights."""
    weights = tuple((a.itemsize, a.size) for a in params.values())
    return DevicePlan(_scratch(program, signature, executable), weights)


def _scratch(program: ProgramIR, signature: Signature, executable: Executable) -> int | None:
    """Return the bytes of scratch memory of a call, None where the plan does not say.

    Its figure for transient memory covers the whole module, with results and code that runs at
    load. So it is used only where @main is the only function and every result has its own memory.
    """
    transient = executable.plan.get("transient")
    if transient is None or signature.variants or set(executable.dispatches) - {"main"}:
        return None
    if not all(p.is_static for p in signature.outputs) or not _own_results(program):
        return None
    sizes = [dtypes.from_name(p.dtype).size * math.prod(p.dims) for p in signature.outputs]
    if len(sizes) > 1:  # both share one block of memory
        sizes = [-(-n // _ALIGNMENT) * _ALIGNMENT for n in sizes]
    left = transient - sum(sizes)
    return left if left >= 0 else None


def _own_results(program: ProgramIR) -> bool:
    """Return whether no result is an input, a literal, another result or a view of these."""
    operations = entry_block(program.main()).operations
    bases = [_base(v) for v in operations[len(operations) - 1].operation.operands]
    made = not any(b is None for b in bases)
    return made and len(set(bases)) == len(bases)


def _base(value: ir.Value) -> ir.Value | None:
    """Return the value that a value is a view of; None for an input or a literal."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner
        if literals.is_literal(value):
            return None
        if not is_a(op, ViewOp) or not len(op.operands):
            return value
        value = op.operands[0]
    return None
