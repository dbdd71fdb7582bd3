"""Dumps that MIGRAPHX_ variables ask for: lowered modules, kernels, their code, as files.

MIGRAPHX_TRACE_MLIR=1                the lowered module on stderr
MIGRAPHX_MLIR_DUMP=DIR               a .mlir file for each kernel, as the backend gets it
MIGRAPHX_MLIR_DUMP_TO_MXR=DIR        a .mxr file for each kernel, a program of its own
MIGRAPHX_GPU_DUMP_ASM=1              the assembly of each kernel on stderr, on cpu too
MIGRAPHX_GPU_DUMP_SRC=1              each kernel as the backend gets it on stderr
MIGRAPHX_DEBUG_SAVE_TEMP_DIR=1       the backend's files are kept; where is said on stderr
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore, is_literal
from mgx_mlir.core.op import Kernel, is_a, is_terminator
from mgx_mlir.printers.listing import kernel_name
from mgx_mlir.printers.tree_files import save_tree
from mgx_mlir.printers.value_tree import program_tree
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.rewrite.switches import flag
from mgx_mlir.targets.flags import DUMP_FILES

_SOURCES = "--iree-hal-dump-executable-sources-to"
_ASSEMBLY = (".s", ".rocmasm")
# the folder of the compile that is under way, and the lists of kept_assembly: of this thread
_HELD: ContextVar[str | None] = ContextVar("mgx_kept_files", default=None)
_READERS: ContextVar[tuple[list[str], ...]] = ContextVar("mgx_kept_assembly", default=())


@contextmanager
def kept_assembly() -> Iterator[list[str]]:
    """Collect the assembly files of the compiles inside, as text. A cache hit has none."""
    found: list[str] = []
    token = _READERS.set((*_READERS.get(), found))
    try:
        yield found
    finally:
        _READERS.reset(token)


def dump_flags() -> tuple[str, ...]:
    """Return the iree-compile flags that write the dumps which the environment asks for."""
    found = []
    folder = os.environ.get("MIGRAPHX_MLIR_DUMP")
    if folder:
        found.append(f"{_SOURCES}={_made(folder)}")
    shown = flag("MIGRAPHX_GPU_DUMP_ASM") or flag("MIGRAPHX_GPU_DUMP_SRC")
    if _keeps() or shown or _READERS.get():
        _drop()
        try:
            kept = tempfile.mkdtemp(prefix="mgx-compile-")
        except OSError as e:
            why = (e.strerror or str(e)).lower()
            raise FileError(f"no temporary folder can be made: {why}") from None
        _HELD.set(kept)
        found.append(f"{DUMP_FILES}={kept}")
    return tuple(found)


def _keeps() -> bool:
    return flag("MIGRAPHX_DEBUG_SAVE_TEMP_DIR")


def _drop() -> None:
    folder = _HELD.get()
    _HELD.set(None)
    if folder is not None and not _keeps():
        shutil.rmtree(folder, ignore_errors=True)


def _made(folder: str) -> str:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"cannot make the folder: {why}", location=folder) from None
    return os.path.abspath(folder)


def show_lowered(lowered: Lowered, program: ProgramIR) -> None:
    """Print the lowered module and write the kernels, where the environment asks for it."""
    if flag("MIGRAPHX_TRACE_MLIR") or os.environ.get("MIGRAPHX_TRACE_MLIR") == "2":
        with program.ctx:
            module = ir.Module.parse(lowered.bytecode, program.ctx)
            print(module, file=sys.stderr)
    folder = os.environ.get("MIGRAPHX_MLIR_DUMP_TO_MXR")
    if folder:
        for i, kernel in enumerate(kernel_programs(program)):
            path = Path(_made(folder), f"kernel{i}_{kernel.source}.mxr")
            save_tree(program_tree(kernel), path, "msgpack")


def show_compiled() -> None:
    """Print the code of the kernels of a compile, and say where its files are."""
    folder = _HELD.get()
    if folder is not None:
        for path in sorted(Path(folder).rglob("*")):
            asked = (flag("MIGRAPHX_GPU_DUMP_ASM") and path.suffix in _ASSEMBLY) or (
                flag("MIGRAPHX_GPU_DUMP_SRC") and path.suffix == ".mlir"
                and "benchmark" not in path.name and "configured" not in path.name
            )  # fmt: skip
            if path.suffix in _ASSEMBLY:
                for texts in _READERS.get():
                    texts.append(path.read_text(errors="replace"))
            if asked:
                print(f"{path.name}:\n{path.read_text(errors='replace')}", file=sys.stderr)
        if _keeps():
            print(f"Temporary files: {folder}", file=sys.stderr)
    _drop()


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
