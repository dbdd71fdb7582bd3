"""compile(): a model or a program in, a compiled program out."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.options import KEYWORDS, CompileOptions
from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.compiler.sources import ModelSource, fixed
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.compiler.tuning.tuned import compile_tuned
from mgx_mlir.compiler.without_names import WithoutNames, judge
from mgx_mlir.core import interrupts

if TYPE_CHECKING:
    from mgx_mlir.compiler.ref_program import RefProgram


@interrupts.held
def compile(
    model: ModelSource | object,
    target: str | None = None,
    *,
    options: CompileOptions | None = None,
    **keywords: Any,
) -> CompiledProgram:
    """Compile a model for a target.

    model: a path (.onnx, .pb, .mlir, .mxr, .json, a SavedModel's folder), the bytes of an ONNX
    file or a file that is open for bytes, an onnx ModelProto, an onnx_ir Model, a torch
    ExportedProgram or ONNXProgram, a ProgramIR, or an API program.
    target: "ref", "cpu" or "gpu"; by default gpu where a GPU is found, else cpu.
    keywords: the fields of CompileOptions, which override `options`, and for the importer options
    of parse_onnx or the fields of TfOptions.

    Errors: MgxError for wrong options, unreadable models, unsupported operators, failed compiles.
    """
    chosen = CompileOptions.of(target, options, keywords)
    model = fixed(model, chosen.importer)
    if chosen.sizes or chosen.background:
        return _behind(model, chosen)
    return _named(model, chosen)


def _named(model: ModelSource, chosen: CompileOptions) -> CompiledProgram:
    """Compile a model; a call that gives one dim name two sizes compiles it again without names."""
    made = _compile(model, chosen)
    is_onnx = isinstance(model, bytes) or str(model).endswith(".onnx")
    shared = made.signature.shared_names() if is_onnx else []
    if shared:
        again = partial(_without_names, model, chosen)
        made.without_names = WithoutNames(again, judge(model, chosen.importer), shared)
    return made


def _behind(model: ModelSource, options: CompileOptions) -> CompiledProgram:
    """Compile on other threads: for several sizes, or while the reference answers."""
    # start-up: few programs need them
    from mgx_mlir.compiler.background_program import BackgroundProgram
    from mgx_mlir.compiler.behind import Behind
    from mgx_mlir.targets.child import shared_compiler

    one = replace(options, background=False, sizes=())
    shared_compiler()  # registered first, so it ends after the threads that use it
    if not options.sizes:
        behind = Behind(lambda: _named(model, one))
        alone = BackgroundProgram(options.placement, _named(model, options.for_ref()), behind)
        alone.limits = RunLimits.of(options.max_run_seconds, options.max_run_memory)
        return alone
    first = _named(model, options.for_ref()) if options.background else None
    from mgx_mlir.compiler.models import program_of
    from mgx_mlir.compiler.sized_program import compile_sizes

    read = program_of(model, options.importer)
    made = compile_sizes(read, options.sizes, options.placement, lambda p: _compile(p, one), first)
    made.limits = RunLimits.of(options.max_run_seconds, options.max_run_memory)
    if not options.background:
        try:
            made.wait()
        except BaseException:
            made.close()  # stops the sizes that still compile
            raise
    return made


def _shown() -> inspect.Signature:
    """Return the signature of `compile` with the fields of CompileOptions as its keywords."""
    parameters = list(inspect.signature(compile).parameters.values())
    defaults = inspect.signature(CompileOptions).parameters
    named = [defaults[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in KEYWORDS]
    return inspect.Signature([*parameters[:-1], *named, parameters[-1]])


compile.__signature__ = _shown()  # help() and editors show it


def _without_names(
    model: ModelSource, options: CompileOptions, names: Sequence[str]
) -> CompiledProgram:
    """Compile a model again without these names of dims."""
    return _compile(model, replace(options, importer={**options.importer, "loose_names": names}))


def _compile(model: ModelSource, options: CompileOptions) -> CompiledProgram:
    """Compile a model for the options' target; set the program's run options."""
    if options.target == "ref":
        made: CompiledProgram = _interpret(model, options)
    elif options.target == "gpu":
        made = _compile_gpu(model, options)
    else:
        made = compile_tuned(model, options)
    made.run_by(options)
    return made


def _compile_gpu(model: ModelSource, options: CompileOptions) -> IreeProgram:
    """Compile for each architecture. TargetError where an emulator is asked for and not built."""
    # start-up: only what the target needs
    from mgx_mlir.compiler.architectures import named, of_device, together
    from mgx_mlir.targets import emulator, get_target

    here = of_device(options.device_id, emulate=options.emulate)
    archs = named(options.arch) or (here,)
    for arch in archs if options.emulate else ():
        emulator.check_arch(get_target("gpu", architecture=arch).arch)
        emulator.activate()
    each = [replace(options, arch=arch) for arch in archs]
    if len(each) == 1:
        return compile_tuned(model, each[0])
    return together(_side_by_side(model, each), here)


def _side_by_side(model: ModelSource, options: Sequence[CompileOptions]) -> list[IreeProgram]:
    """Compile a model with several options: while IREE compiles for one, the next is lowered."""
    # start-up: few programs need it
    from mgx_mlir.compiler.behind import Behind
    from mgx_mlir.compiler.models import apart

    if any(o.exhaustive_tune for o in options):
        return [compile_tuned(model, o) for o in options]  # one search at a time: it measures
    works = [Behind(partial(compile_tuned, apart(model), o)) for o in options[1:]]
    try:
        made = [compile_tuned(model, options[0])]
        for work in works:
            found = work.wait()
            assert found is not None
            made.append(found)
        return made
    except BaseException:
        for work in works:
            work.stop()
        raise


def _interpret(model: ModelSource, options: CompileOptions) -> RefProgram:
    """Make the program of the reference interpreter, which computes in f32 or f64."""
    # start-up: only what the target needs
    from mgx_mlir.compiler.models import program_of, refuse_unknown
    from mgx_mlir.compiler.ref_program import RefProgram
    from mgx_mlir.passes.analysis.input_values import state_values
    from mgx_mlir.passes.pipelines import pipeline
    from mgx_mlir.rewrite.passes import run_pipeline

    start = time.perf_counter()
    program = program_of(model, options.importer)
    stats = CompileStats(import_s=time.perf_counter() - start)
    refuse_unknown(program)
    state_values(program)
    run_pipeline(program.module, pipeline("ref"), store=program.store)
    stats.total_s = time.perf_counter() - start
    compute = "f64" if options.ref_double else "f32"
    return RefProgram(options.placement, program, stats, compute)


__all__ = [
    "CompiledProgram",
    "IreeProgram",
    "compile",
]
