"""Dumps that MIGRAPHX_ variables ask for: the lowered module, and its kernels as programs.

MIGRAPHX_TRACE_MLIR=1                the lowered module on stderr
MIGRAPHX_MLIR_DUMP_TO_MXR=DIR        a .mxr file for each kernel, a program of its own
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mgx_mlir.compiler.dump_files import made_folder
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore, is_literal
from mgx_mlir.core.op import Kernel, is_a, is_terminator
from mgx_mlir.printers.listing import kernel_name
from mgx_mlir.printers.tree_files import save_tree
from mgx_mlir.printers.value_tree import program_tree
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.rewrite.switches import flag


def show_lowered(lowered: Lowered, program: ProgramIR) -> None:
    """Print the lowered module and write the kernels, where the environment asks for it."""
    if flag("MIGRAPHX_TRACE_MLIR") or os.environ.get("MIGRAPHX_TRACE_MLIR") == "2":
        with program.ctx:
            module = ir.Module.parse(lowered.bytecode, program.ctx)
            print(module, file=sys.stderr)
    folder = os.environ.get("MIGRAPHX_MLIR_DUMP_TO_MXR")
    if folder:
        for i, kernel in enumerate(kernel_programs(program)):
            path = Path(made_folder(folder), f"kernel{i}_{kernel.source}.mxr")
            save_tree(program_tree(kernel), path, "msgpack")


def kernel_programs(program: ProgramIR) -> list[ProgramIR]:
    """Return each kernel of a compiled program as a program of its source operators."""
    with program.ctx, ir.Location.unknown():
        found = [v.operation for v in entry_block(program.main()).operations if is_a(v, Kernel)]
        return [_kernel_program(program, op, kernel_name(op)) for op in found]


def _kernel_program(program: ProgramIR, op: ir.Operation, name: str) -> ProgramIR:
    block = op.regions[0].blocks[0]
    outside = _constants(op.operands)
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        inputs = [v.type for i, v in enumerate(op.operands) if i not in outside]
        f = func.FuncOp("main", (inputs, [r.type for r in op.results]))
    entry = f.add_entry_block()
    known: dict[ir.Value, ir.Value] = {}
    given = iter(entry.arguments)
    with ir.InsertionPoint(entry):
        for i, argument in enumerate(block.arguments):
            if i in outside:
                known[argument] = outside[i].clone(ir.InsertionPoint(entry)).operation.result
            else:
                known[argument] = next(given)
        for view in block.operations:
            inner = view.operation
            if is_terminator(inner):
                func.ReturnOp([known[v] for v in inner.operands])
                break
            copy = inner.clone(ir.InsertionPoint(entry)).operation
            for n, v in enumerate(copy.operands):
                copy.operands[n] = known.get(v, v)
            known.update(zip(inner.results, copy.results, strict=True))
    return ProgramIR(program.ctx, module, WeightStore(dict(program.store.items())), source=name)


def _constants(operands: Sequence[ir.Value]) -> dict[int, ir.Operation]:
    """Return the operands that are literals, by position; they stay constants."""
    found = {}
    for i, v in enumerate(operands):
        owner = v.owner
        if is_literal(v):
            found[i] = owner.operation
    return found
