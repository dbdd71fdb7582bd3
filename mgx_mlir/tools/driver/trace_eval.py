"""MIGRAPHX_TRACE_EVAL for compiled programs: their kernels, by a second build."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.programs.program_ir import entry_block
from mgx_mlir.runtime.trace_level import trace_level
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.progress import say, working
from mgx_mlir.tools.driver.target_choice import TargetChoice

_TIMED = 10  # calls that the times of kernels are means of


def trace_kernels(
    model: Model, choice: TargetChoice, compiled: CompiledProgram, inputs: Mapping[str, np.ndarray]
) -> None:
    """Print what the environment asks to see of a compiled program's kernels.

    A program that is compiled is one call: the values come from a build that also returns the
    result of every kernel, the times from the runtime's counters. `ref` traces itself.
    """
    level = trace_level()
    if not level or choice.target == "ref":
        return
    # start-up: only what the command asks for is loaded
    from mgx_mlir.debug.blame import Case
    from mgx_mlir.debug.intermediates import SteppedRun
    from mgx_mlir.runtime.trace_eval import EvalTrace

    arrays = compiled.signature.check_inputs(inputs)
    options = {**choice.options(), "exhaustive_tune": False}
    case = Case(model.program, arrays, choice.target, options)
    say("MIGRAPHX_TRACE_EVAL: kernels of a second build, which returns all their results")
    with working("Running kernels"):
        fused = case.fused()
        stepped = SteppedRun(fused, arrays, case.kernels_compiled)
        times = _times(choice, compiled, arrays)
    with fused.ctx, fused.store.active():
        shown = EvalTrace(fused, level, prefix=choice.target)
        shown.parameters()
        computed = set(stepped.positions)
        ops = [view.operation for view in entry_block(fused.main()).operations]
        for at, op in enumerate(ops[:-1]):
            label = shown.before(op)
            if at in computed:
                shown.time(times.get(label))
                shown.values(stepped.values(at))


def _times(
    choice: TargetChoice, compiled: CompiledProgram, arrays: list[np.ndarray]
) -> dict[str, float]:
    """Return the milliseconds of each kernel, by its label, where the runtime knows."""
    if not isinstance(compiled, IreeProgram) or choice.target != "cpu":
        return {}
    # start-up: only what the command asks for is loaded
    from mgx_mlir.tools.driver.timing import kernel_times

    found = kernel_times(compiled, arrays, _TIMED, compiled.thread_count)
    return {line.label: line.ms for line in found.timed if line.ms is not None}
