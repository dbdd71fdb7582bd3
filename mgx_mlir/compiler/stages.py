"""The passes of a compile, from its options and the environment."""

from __future__ import annotations

import logging

from mgx_mlir.compiler import environment
from mgx_mlir.compiler.backend import processor_of
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.core.errors import CompileError
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.gpu.matmul.mma import multiplies_fnuz
from mgx_mlir.passes.pipelines import FEWER_NAMES, NAMING, pipeline
from mgx_mlir.programs.program_ir import ProgramIR, has_dynamic_dims
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.rewrite.rewrite_trace import disabled

log = logging.getLogger(__name__)


def steps_of(options: CompileOptions) -> tuple[str, ...]:
    """Return the passes of a compile, from its options and the environment."""
    isa = isa_of(processor_of(options))
    loops = options.tuning.vector_kernels and isa is not None
    steps = pipeline(
        options.target,
        fast_math=options.fast_math,
        remove_qdq_pairs=options.remove_qdq_pairs,
        fuse=options.boundaries,
        vector_kernels=loops,
        widened=() if isa is None else isa.widened,
        byte_tables=isa is not None and isa.looks_up,
        byte_dots=isa is not None and bool(isa.byte_dot),
        tile_registers=isa is not None and bool(isa.tile_dot),
        few_threads=options.few_threads,
        fnuz=options.target == "gpu" and multiplies_fnuz(options.one_arch),
    )
    return environment.adjusted(steps, options.target)


def names_dynamic_dims(program: ProgramIR, options: CompileOptions) -> bool:
    """Return whether the passes of a compile give names to dynamic dims of the program."""
    steps = steps_of(options)
    return has_dynamic_dims(program.main()) and any(s in NAMING for s in steps)


def run_passes(
    program: ProgramIR, options: CompileOptions, before: ProgramIR | None = None
) -> str | None:
    """Run the target's pipeline. CompileError where it leaves a program that is invalid.

    before: a copy of the program; if given, dynamic dims get names. Where a pass fails on names,
    the passes run again on the copy, with fewer names, then without: slower code with the same
    results. Return the reason why there are no names, None where there are.
    """
    steps = steps_of(options)
    if before is None:
        _run(program, options, tuple(s for s in steps if s not in NAMING))
        return None
    fewer = tuple(FEWER_NAMES if s == NAMING[0] else s for s in steps)
    for tried in (steps, fewer):
        try:
            _run(program, options, tried)
            return None
        except Exception as e:  # any kind: code that takes a name for a number may fail anyhow
            why = f"{type(e).__name__}: {e}".splitlines()[0]
            if tried == steps:
                log.info("only dims that are computed from input sizes have names: %s", why)
                again = before.clone()
                program.module, program.store = again.module, again.store
    log.warning("dynamic dims are compiled without names, which is slower code: %s", why)
    run_unnamed(program, options, before)
    return why


def run_unnamed(program: ProgramIR, options: CompileOptions, before: ProgramIR) -> None:
    """Run the passes again from `before`, without names of dynamic dims."""
    program.module, program.store = before.module, before.store
    run_passes(program, options)


def _run(program: ProgramIR, options: CompileOptions, steps: tuple[str, ...]) -> None:
    with disabled(environment.left_out_rewrites()):
        run_pipeline(
            program.module, steps, store=program.store, verify=False, disable=options.disable
        )
    with program.ctx:
        if not program.module.operation.verify():
            raise CompileError("the program is invalid after the passes")
    program.prune_store()
