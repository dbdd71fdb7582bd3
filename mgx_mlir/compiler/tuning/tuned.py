"""Compiling with what searches found, and searching where the user asks for it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from mgx_mlir.compiler import environment
from mgx_mlir.compiler.compilation import Compilation
from mgx_mlir.compiler.compiled import IreeProgram
from mgx_mlir.compiler.models import HasProgram, ModelSource, program_of
from mgx_mlir.compiler.settings import CompileSettings
from mgx_mlir.compiler.stages import backend_of, run_passes
from mgx_mlir.compiler.tuning.cost_models import by_bound, by_time
from mgx_mlir.compiler.tuning.gemm_search import search_products
from mgx_mlir.compiler.tuning.search import describe, describe_products, search
from mgx_mlir.compiler.tuning.solutions import Tuning, is_kept, kept_products, lookup
from mgx_mlir.core.errors import UsageError
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.switches import flag
from mgx_mlir.targets import devices
from mgx_mlir.targets.cache import digest, hash_file
from mgx_mlir.targets.child import compiler_version
from mgx_mlir.targets.flags import host_cpu


def compile_tuned(model: ModelSource, settings: CompileSettings) -> IreeProgram:
    """Compile with the solution that is kept for the model; search for one where that is asked."""
    searched = settings.exhaustive_tune or flag("MIGRAPHX_MLIR_TUNE_EXHAUSTIVE")
    if not searched and not is_kept():
        return Compilation(settings).run(model)
    problem = _problem(model, settings)
    lines: list[str] = []
    if settings.target == "gpu":
        if searched:
            lines += _tune_products(model, settings)
        found = kept_products(backend_of(settings).arch)
        settings = replace(settings, products=tuple(found.items()))
        lines = lines or describe_products(len(found))
    known = lookup(problem)
    if searched and known is None and (settings.target != "gpu" or _is_timed(settings)):
        compiled = _fastest(model, settings, problem)
        lines += compiled.stats.tuning
    else:
        if known is not None:
            settings = replace(settings, tuning=known)
            lines.append(describe(known))
        compiled = Compilation(settings).run(model)
    compiled.stats.tuning = tuple(lines)
    return compiled


def _fastest(model: ModelSource, settings: CompileSettings, problem: dict[str, Any]) -> IreeProgram:
    """Search, and return the fastest of the programs that it made."""

    def compile_with(tuning: Tuning) -> IreeProgram:
        return Compilation(replace(settings, tuning=tuning)).run(model)

    best, found = search(
        problem, settings.target, compile_with,
        threads=settings.threads, inputs=settings.tuning_inputs,
    )  # fmt: skip
    best.stats.tuning = tuple(found.lines())
    return best


def _is_timed(settings: CompileSettings) -> bool:
    """Return whether there is a GPU to time programs on."""
    return not settings.emulate and bool(devices.hip_devices())


def _tune_products(model: ModelSource, settings: CompileSettings) -> list[str]:
    """Search how the products of a program for GPUs are computed; say what was found in lines."""
    backend = backend_of(settings)
    program = program_of(model, settings.onnx)
    run_passes(program, settings)
    timed = _is_timed(settings)
    level = environment.level(settings.target, settings.tuning.opt_level)
    cost_model = (by_time if timed else by_bound)(backend.arch, level, settings.timeout)
    found = search_products(program, backend.arch, cost_model, "time" if timed else "bound")
    return found.lines()


def _problem(model: ModelSource, settings: CompileSettings) -> dict[str, Any]:
    """Describe what a solution is for: the program, its compile options and the machine."""
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
        row = replace(settings, tuning=Tuning(), products=()).key()
    except TypeError as e:
        raise UsageError(f"a solution is looked up by the options: {e}") from None
    options = digest(json.dumps(row, sort_keys=True), source)
    arch = settings.arch or ("host" if settings.target == "cpu" else "default")
    host = host_cpu() if settings.target == "cpu" else ""
    return {
        "name": f"{settings.target}::program",
        "problem": {"program": options, "arch": arch, "host": host,
                    "threads": settings.threads or available_cpus(),
                    "compiler": compiler_version()},
    }  # fmt: skip
