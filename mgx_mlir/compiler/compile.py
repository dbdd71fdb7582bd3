"""compile(): a model or a program in, a compiled program out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from mgx_mlir.compiler.architectures import named, of_device, together
from mgx_mlir.compiler.compiled import CompiledProgram, CompileStats, IreeProgram, check_graph
from mgx_mlir.compiler.limited_runs import RunLimits
from mgx_mlir.compiler.models import ModelSource, fixed, program_of, read_model, refuse_unknown
from mgx_mlir.compiler.ref_program import RefProgram
from mgx_mlir.compiler.settings import CompileSettings
from mgx_mlir.compiler.tuning.search import Inputs
from mgx_mlir.compiler.tuning.tuned import compile_tuned
from mgx_mlir.compiler.without_names import WithoutNames, judge
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import UsageError
from mgx_mlir.passes.analysis.input_values import state_values
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.rewrite.passes import PASSES, is_upstream, pass_name, pipeline_name, run_pipeline
from mgx_mlir.rewrite.pipeline import did_you_mean
from mgx_mlir.targets import default_target, emulator, get_target


@interrupts.held
def compile(
    model: ModelSource | object,
    target: str | None = None,
    *,
    threads: int | None = None,
    arch: str | Sequence[str] | None = None,
    cache: bool = True,
    fast_math: bool = True,
    remove_qdq_pairs: bool = False,
    disable: Sequence[str] = (),
    kernel_boundaries: bool = True,
    ref_double: bool = False,
    timeout: float | None = None,
    exhaustive_tune: bool = False,
    tuning_inputs: Inputs | None = None,
    emulate: bool = False,
    device_id: int = 0,
    hip_graph: bool = False,
    stream_priority: int | None = None,
    max_run_seconds: float | None = None,
    max_run_memory: int | None = None,
    **onnx_options: Any,
) -> CompiledProgram:
    """Compile a model for a target.

    `model` is a path (.onnx, .pb, .mlir, .mxr, .json, a SavedModel's folder), the bytes of an
    ONNX file or a file that is open for bytes, an onnx ModelProto, an onnx_ir Model, a torch
    ExportedProgram or ONNXProgram, a ProgramIR, or an API program.
    `target` is "ref", "cpu" or "gpu" (None: gpu where a HIP device is found, else cpu); `arch` a
    gfx or product name for gpu, a processor name for cpu; of several ("gfx942,gfx1100", or a list)
    the one that fits the device is run. `threads` counts CPU threads of a run (None: all, or one
    for a small program).
    `device_id` is which of several GPUs it runs on. `hip_graph` makes each run of a gpu program of
    fixed sizes one launch of a HIP graph, recorded at the first run, on a stream of
    `stream_priority`. `onnx_options` are those of parse_onnx, or the
    fields of TfOptions. `remove_qdq_pairs` leaves out the rounding of a value that is quantised and
    dequantised again, where no product takes it in 8 bits, as MIGraphX does. `ref_double` makes
    `ref` compute in f64. `exhaustive_tune` compiles in several ways, times them on
    `tuning_inputs(signature)`, and keeps the fastest in the tuning file, from which later compiles
    take it; on gpu each matrix product first, by the bound of its code where there is no device.
    `emulate` runs a gpu program on the emulator of AMD GPUs. `timeout` seconds end the backend's
    compile; without it 600 do, and 6 more for each kernel, after which the backend chooses the
    kernels itself, within as long again. `max_run_seconds` and `max_run_memory`, in bytes beside
    the weights, are limits of each run: it is in a process of its own, which ends there
    (RunLimitError).
    Raises MgxError: unreadable models, unsupported operators, failed compilation.
    """
    name = target or default_target()
    _check_passes(disable)
    if threads is not None and not isinstance(threads, int | np.integer):
        raise UsageError(f"threads expected an integer, got {threads!r}")
    if timeout is not None and not (isinstance(timeout, Real) and timeout >= 0):
        raise UsageError(f"timeout expected seconds, got {timeout!r}")
    if ref_double and name != "ref":
        raise UsageError(f"ref_double is for ref, the target is {name}")
    if arch is not None and name == "ref":
        raise UsageError("arch is for cpu and gpu, the target is ref")
    if tuning_inputs is not None and not exhaustive_tune:
        raise UsageError("tuning_inputs is for exhaustive_tune=True: nothing is timed without")
    check_graph(name, hip_graph, stream_priority)
    limits = RunLimits.of(max_run_seconds, max_run_memory)
    model = fixed(model, onnx_options)
    settings = CompileSettings(
        name, None, fast_math, tuple(disable), kernel_boundaries, cache, timeout, onnx_options,
        emulate=emulate, threads=threads, exhaustive_tune=exhaustive_tune,
        tuning_inputs=tuning_inputs, remove_qdq_pairs=remove_qdq_pairs,
    )  # fmt: skip
    made = _compile(model, settings, arch, device_id=device_id, ref_double=ref_double)
    made.hip_graph, made.stream_priority = hip_graph, stream_priority
    made.limits = limits
    is_onnx = isinstance(model, bytes) or str(model).endswith(".onnx")
    shared = made.signature.shared_names() if is_onnx else []
    if shared:

        def again(names: Sequence[str]) -> CompiledProgram:
            own = {**onnx_options, "loose_names": names}
            return _compile(
                model, replace(settings, onnx=own), arch, device_id=device_id,
                ref_double=ref_double,
            )  # fmt: skip

        made.without_names = WithoutNames(again, judge(model, onnx_options), shared)
    return made


def _check_passes(disable: Sequence[str]) -> None:
    """Raise UsageError for a name of no pass: it would leave out nothing."""
    if isinstance(disable, str):
        raise UsageError(f"disable expected a list of passes, got '{disable}'")
    for name in disable:
        if pass_name(name) not in PASSES and not is_upstream(name):
            known = [*PASSES, *map(pipeline_name, PASSES)]
            raise UsageError(f"disable: unknown pass '{name}'", notes=did_you_mean(name, known))


def _compile(
    model: ModelSource,
    settings: CompileSettings,
    arch: str | Sequence[str] | None,
    *,
    device_id: int,
    ref_double: bool,
) -> CompiledProgram:
    """Compile a model for the target of the settings."""
    name, emulate = settings.target, settings.emulate
    if name == "gpu":
        here = of_device(device_id, emulate=emulate)
        made = [_compile_gpu(model, replace(settings, arch=a)) for a in [*named(arch)] or [here]]
        compiled = made[0] if len(made) == 1 else together(made, here)
        compiled.device_id = device_id
        return compiled
    if device_id:
        raise UsageError(f"only gpu programs have a device_id, the target is {name}")
    if not isinstance(arch, str | None):
        raise UsageError(f"expected one processor's name, got {arch!r}")
    if emulate:
        raise UsageError(f"only gpu programs are emulated, the target is {name}")
    settings = replace(settings, arch=arch)
    if name == "ref":
        return _interpret(model, settings, "f64" if ref_double else "f32")
    return compile_tuned(model, settings)


def _compile_gpu(model: ModelSource, settings: CompileSettings) -> IreeProgram:
    """Compile for one architecture. TargetError where an emulator is asked for and not built."""
    if settings.emulate:
        emulator.check_arch(get_target("gpu", architecture=settings.arch).arch)
        emulator.activate()
    return compile_tuned(model, settings)


def _interpret(model: ModelSource, settings: CompileSettings, compute: str) -> RefProgram:
    """Make the program of the reference interpreter, which computes in f32 or f64."""
    if settings.exhaustive_tune:
        raise UsageError("nothing can be tuned for ref: it interprets each operator")
    start = time.perf_counter()
    program = program_of(model, settings.onnx)
    stats = CompileStats(import_s=time.perf_counter() - start)
    refuse_unknown(program)
    state_values(program)
    run_pipeline(program.module, pipeline("ref"), store=program.store)
    stats.total_s = time.perf_counter() - start
    return RefProgram(settings.placement, program, stats, compute)


__all__ = ["CompiledProgram", "IreeProgram", "RefProgram", "compile", "read_model"]
