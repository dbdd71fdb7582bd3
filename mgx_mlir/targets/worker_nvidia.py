"""Kernels of NVIDIA GPUs between two of IREE's phases, inside the compile worker.

Behind IREE's phase `executable-configurations` its own passes make loops and vectors of each kernel
(`LOWER`). What they leave is changed here, then becomes instructions:

    copies to shared memory        ->  ahead, by `cp.async` (worker_copies.py)
    pairs of shared memory         ->  `ldmatrix` (worker_fragments.py)
    a short loop over a lane's own memory  ->  no loop: registers have no index
    exp, exp2 and quotients beside matrices of 16 bits  ->  the hardware's own instructions;
                                       IREE's are polynomials of 20 instructions, and `div.rn`

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgx_mlir.targets import worker_copies as copies
    from mgx_mlir.targets import worker_fragments as fragments
else:
    import worker_copies as copies  # the worker has loaded both from beside this file
    import worker_fragments as fragments

_KERNELS = "hal.executable(hal.executable.variant(builtin.module(func.func({}))))"
LOWER = _KERNELS.format("iree-llvmgpu-lower-executable-target")
FINISH = _KERNELS.format("iree-codegen-unroll-annotated-loops,canonicalize,cse")
_PIPELINE = re.compile(r"pipeline = #?[\w.]+(<\w+>)?")
_STAGES = re.compile(r"prefetch_num_stages = (\d+)")
_THREADS = re.compile(r"workgroup_size = \[(\d+), (\d+), (\d+)\]")
_UNPADDED = "no_reduce_shared_memory_bank_conflicts = true"  # rows are padded here
_PRIVATE = "#gpu.address_space<private>"
_SHORT = 16  # most iterations of a loop that is unrolled
_BARRIER = "gpu.barrier"
_EQUAL = 0  # predicate of arith.cmpi
# f32 in kernels that multiply matrices of 16 bits: 2 ulp for exp2 and quotients, 100 for exp of
# large numbers; results that are subnormal are 0
_INSTRUCTIONS = {
    "math.exp2": ("ex2.approx.ftz.f32 $0, $1;", 1),
    "math.exp": ("{ .reg .f32 t; mul.f32 t, $1, 0f3FB8AA3B; ex2.approx.ftz.f32 $0, t; }", 1),
    "arith.divf": ("div.full.f32 $0, $1, $2;", 2),
}


def change(ir: Any, module: Any) -> int:
    """Change the kernels of a module that `LOWER` lowered, and mark all as lowered.

    Return how many loops copy ahead.
    """
    count = 0
    with module.context, ir.Location.unknown():
        for function in copies.walk(ir, module.operation, "func.func"):
            if "translation_info" not in function.attributes:
                continue
            said = str(function.attributes["translation_info"])
            done = _PIPELINE.sub("pipeline = #iree_codegen.no_pipeline", said, count=1)
            function.attributes["translation_info"] = ir.Attribute.parse(done)
            size = _THREADS.search(said)
            if _UNPADDED not in said or size is None:
                continue
            threads = [int(n) for n in size.groups()]
            if threads[1:] == [1, 1]:
                _without_conditions(ir, function)
            found = _STAGES.search(said)
            count += copies.change(ir, function, int(found[1]) if found else 1)
            fragments.change(ir, function, math.prod(threads))
            for op in copies.walk(ir, function, "scf.for"):
                if _is_over_registers(ir, op):
                    op.attributes["unroll_loop"] = ir.UnitAttr.get()
            if copies.walk(ir, function, "nvgpu.mma.sync"):
                for name, (text, count) in _INSTRUCTIONS.items():
                    for op in copies.walk(ir, function, name):
                        _by_instruction(ir, op, text, count)
    return count


def _without_conditions(ir: Any, function: Any) -> None:
    """Remove conditions y == 0 and z == 0 of thread ids: workgroups are one thread wide there."""
    for op in copies.walk(ir, function, "scf.if"):
        compared = op.operands[0].owner
        if isinstance(compared, ir.Block) or compared.name != "arith.cmpi" or len(op.results):
            continue
        thread = compared.operands[0].owner
        if isinstance(thread, ir.Block) or thread.name != "gpu.thread_id":
            continue
        equal = ir.IntegerAttr(compared.attributes["predicate"]).value == _EQUAL
        none = copies.constant(ir, compared.operands[1]) == 0
        along = str(thread.attributes["dimension"]) == "#gpu.dim<x>"
        if along or not equal or not none or len(op.regions[1].blocks):
            continue
        for each in [o.operation for o in op.regions[0].blocks[0].operations][:-1]:
            each.move_before(op)
        op.erase()


def _is_over_registers(ir: Any, op: Any) -> bool:
    """Return whether a short loop reads or writes a lane's own memory, which is registers only
    where each index is known."""
    low, high, step = (copies.constant(ir, v) for v in list(op.operands)[:3])
    if low is None or high is None or step is None or high - low > _SHORT * step:
        return False
    spaces = [
        str(ir.MemRefType(o.operands[i].type).memory_space)
        for i, name in enumerate(("vector.transfer_read", "vector.transfer_write"))
        for o in copies.walk(ir, op, name)
    ]
    return _PRIVATE in spaces and not copies.walk(ir, op, _BARRIER)


def _by_instruction(ir: Any, op: Any, text: str, count: int) -> None:
    """Compute each element of a vector by instructions of the hardware; count: operands."""
    kind, single = op.results[0].type, ir.F32Type.get()
    is_vector = isinstance(kind, ir.VectorType)
    if (ir.VectorType(kind).element_type if is_vector else kind) != single:
        return
    with ir.InsertionPoint(op):
        given = [[v] for v in op.operands]
        if is_vector:
            each = [single] * math.prod(kind.shape)
            given = [
                list(ir.Operation.create("vector.to_elements", results=each, operands=v).results)
                for v in given
            ]
        attributes = {
            "asm_string": ir.StringAttr.get(text),
            "constraints": ir.StringAttr.get("=f" + ",f" * count),
        }
        made = [
            ir.Operation.create(
                "llvm.inline_asm", results=[single], operands=list(own), attributes=attributes
            ).results[0]
            for own in zip(*given, strict=True)
        ]
        if is_vector:
            made = ir.Operation.create(
                "vector.from_elements", results=[kind], operands=made
            ).results
    op.results[0].replace_all_uses_with(made[0])
    op.operation.erase()


__all__ = ["FINISH", "LOWER", "change"]
