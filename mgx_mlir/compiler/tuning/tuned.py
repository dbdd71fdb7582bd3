"""Compile with the results of earlier searches, and search where the user asks for it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from mgx_mlir.compiler import environment
from mgx_mlir.compiler.backend import backend_of
from mgx_mlir.compiler.compile_once import compile_once
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.sources import HasProgram, ModelSource
from mgx_mlir.compiler.tuning.solutions import Tuning, is_kept, lookup, stored_matmuls
from mgx_mlir.core.errors import UsageError
from mgx_mlir.hardware.architectures import vendor_of
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.switches import flag
from mgx_mlir.targets import devices
from mgx_mlir.targets.cache import digest, hash_file
from mgx_mlir.targets.flags import host_cpu


def compile_tuned(model: ModelSource, options: CompileOptions) -> IreeProgram:
    """Compile with the model's stored solution; search for one on request."""
    searched = options.exhaustive_tune or flag("MIGRAPHX_MLIR_TUNE_EXHAUSTIVE")
    if not searched and not is_kept():
        return compile_once(model, options)
    # start-up: most programs are not tuned
    from mgx_mlir.compiler.tuning.search import describe, describe_products

    problem = _problem(model, options)
    lines: list[str] = []
    if options.target == "gpu":
        if searched:
            lines += _tune_products(model, options)
        found = stored_matmuls(backend_of(options).arch)
        options = replace(options, matmuls=tuple(found.items()))
        lines = lines or describe_products(len(found))
    known = lookup(problem)
    if searched and known is None and (options.target != "gpu" or _is_timed(options)):
        compiled = _fastest(model, options, problem)
        lines += compiled.stats.tuning
    else:
        if known is not None:
            options = replace(options, tuning=known)
            lines.append(describe(known))
        compiled = compile_once(model, options)
    compiled.stats.tuning = tuple(lines)
    return compiled


def _fastest(model: ModelSource, options: CompileOptions, problem: dict[str, Any]) -> IreeProgram:
    """Search, and return the fastest program."""
    from mgx_mlir.compiler.tuning.search import search

    def compile_with(tuning: Tuning) -> IreeProgram:
        return compile_once(model, replace(options, tuning=tuning))

    best, found = search(
        problem, options.target, compile_with,
        threads=options.threads, inputs=options.tuning_inputs,
    )  # fmt: skip
    best.stats.tuning = tuple(found.lines())
    return best


def _is_timed(options: CompileOptions) -> bool:
    """Return whether there is a GPU to time programs on."""
    return not options.emulate and bool(devices.gpu_devices())


def _tune_products(model: ModelSource, options: CompileOptions) -> list[str]:
    """Search the GEMM configs of a GPU program; return lines that describe the results."""
    from mgx_mlir.compiler.models import program_of
    from mgx_mlir.compiler.stages import run_passes
    from mgx_mlir.compiler.tuning.cost_models import by_bound, by_time
    from mgx_mlir.compiler.tuning.gemm_search import search_products

    backend = backend_of(options)
    program = program_of(model, options.importer)
    run_passes(program, options)
    timed = _is_timed(options)
    if not timed and vendor_of(backend.arch) == "nvidia":
        raise UsageError(
            f"a search for {backend.arch} needs the device: no bound is known for its code",
            notes=["compile without a search, or search on a machine with such a GPU"],
        )
    level = environment.level(options.target, options.tuning.opt_level)
    cost_model = (by_time if timed else by_bound)(backend.arch, level, options.timeout)
    found = search_products(program, backend.arch, cost_model, "time" if timed else "bound")
    return found.lines()


def _problem(model: ModelSource, options: CompileOptions) -> dict[str, Any]:
    """Return the problem that a solution is for: program, compile options and machine."""
    from mgx_mlir.targets.child import compiler_version

    if isinstance(model, HasProgram):
        model = model.program_ir
    if isinstance(model, ProgramIR):
        source = digest(model.text())
    elif isinstance(model, bytes | bytearray | memoryview):
        source = digest(bytes(model))
    elif os.path.isfile(model):
        source = hash_file(Path(model))
    else:
        source = os.path.abspath(os.fspath(model))
    try:
        row = replace(options, tuning=Tuning(), matmuls=()).key()
    except TypeError as e:
        raise UsageError(f"a search needs options that can be written as text: {e}") from None
    program = digest(json.dumps(row, sort_keys=True), source)
    arch = options.one_arch or ("host" if options.target == "cpu" else "default")
    host = host_cpu() if options.target == "cpu" else ""
    return {
        "name": f"{options.target}::program",
        "problem": {"program": program, "arch": arch, "host": host,
                    "threads": options.threads or available_cpus(),
                    "compiler": compiler_version()},
    }  # fmt: skip
