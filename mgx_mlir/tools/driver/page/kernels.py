"""The kernels of the report's page: figures, source nodes, the rule of each and its refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mgx_mlir.compiler.compilation import Compilation
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.passes.lowering.select import watching
from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.printers.kernel_choices import shown
from mgx_mlir.programs.lowered import KernelChoice
from mgx_mlir.programs.program_ir import ProgramIR

NODES = 40  # source nodes of a kernel that the page names


def lowered_choices(program: ProgramIR, options: CompileOptions) -> list[KernelChoice]:
    """Return the rule of each kernel, by the passes and the lowering alone, without the backend.

    For a program whose code came from the cache or from a file. Errors: CompileError.
    """
    compilation = Compilation(replace(options, cache=False))
    copy = program.clone()
    compilation.optimize(copy)
    with watching() as found:
        compilation.lower(copy, regions=options.boundaries)
    return found


def kernel_rows(
    compiled: CompiledProgram,
    listed: Sequence[ListedInstruction],
    timed: Sequence[Mapping[str, Any]],
    choices: Sequence[KernelChoice],
) -> list[dict[str, Any]]:
    """Return a row for each timed kernel, with its rule if the lowering's order determines it.

    listed: the program's lines. timed: kernels of `perf --json`, with their shares.
    """
    reasons = _reasons(compiled, listed, choices)
    return [
        {
            "text": r["name"],
            "nodes": ", ".join(r["nodes"][:NODES]),
            "ms": r["ms"],
            "share": r["share"],
            "bytes": r["bytes"],
            "operations": r["operations"],
            "gb_s": r["gb_s"],
            "gflop_s": r["gflop_s"],
            "peak": max(filter(None, (r["bandwidth_share"], r["operations_share"])), default=None),
            **reasons.get(r["line"].partition(" = ")[0], {"rule": "", "why": []}),
        }
        for r in timed
    ]


def _reasons(
    compiled: CompiledProgram, listed: Sequence[ListedInstruction], choices: Sequence[KernelChoice]
) -> dict[str, dict[str, Any]]:
    """Return rule and refusals by the name of the instruction that a kernel is listed as."""
    if not isinstance(compiled, IreeProgram):
        return {}
    kernels = [i for i in listed if i.op.startswith(f"{compiled.target}::")]
    if [i.op for i in kernels] != [k.name for k in compiled.kernels]:
        return {}  # a variant, or ops that the lowering joined
    left: dict[tuple[str, str], list[KernelChoice]] = {}
    for c in choices:
        left.setdefault((c.name, shown(c.location)), []).append(c)
    found = {}
    for i, k in zip(kernels, compiled.kernels, strict=True):
        mine = left.get((k.name, shown(k.location)), [])
        whole = next((c for c in mine if not c.part), None)
        parts = [whole] if whole is not None else mine
        for c in parts:
            mine.remove(c)
        if parts:
            why = [[c.part, rule, reason] for c in parts for rule, reason in c.refusals]
            found[i.lhs] = {"rule": ", ".join(c.rule for c in parts), "why": why}
    return found
