"""perf: a model compiled, run many times, and its times."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.driver import timing
from mgx_mlir.driver.arguments import Arguments
from mgx_mlir.driver.compiling import Choice, choose_target, compile_model, emit_compiled
from mgx_mlir.driver.data import allocate
from mgx_mlir.driver.emit import form_of
from mgx_mlir.driver.model import Model
from mgx_mlir.driver.options import HELP, PERF, RUNNERS
from mgx_mlir.driver.progress import say, step, working
from mgx_mlir.printers.listing import Numbering

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
Prints the compiled program, then each line with its time and share, a summary by kernel, and the
times of whole calls. A call goes from numpy arrays to numpy arrays; the first is not timed.
Total time is the mean without the quickest and slowest quarter; Rate is --batch per total time.
On the CPU the times of kernels come from the runtime's own counters, in a run of its own with
the same number of threads; with several threads they are summed over threads. Where the backend
split or joined kernels, the times go by its launches. On the GPU only whole calls are timed.
Overhead is what a call takes beyond its kernels."""
OPTIONS = (*RUNNERS, *PERF, HELP)


def run(args: Arguments) -> int:
    model = Model(args)
    form_of(args)
    choice = choose_target(args, runs=True)
    count = args.get("--iterations", 100)
    version = args.get("--text-version", "seed")
    compiled = compile_model(args, model, choice)
    emit_compiled(args, model, choice, compiled)
    sys.stdout.write("\n")
    inputs = allocate(args, model, compiled.signature, compiled.program)
    arrays = compiled.signature.check_inputs(inputs)
    with step("Running performance report ..."):
        calls = timing.time_calls(compiled, arrays, count)
    if "load_s" in compiled.stats:
        say(f"Loaded in {compiled.stats['load_s']:.2f} s")
    say(f"Calls: {count}, from numpy arrays to numpy arrays")
    with working("Timing kernels"):
        kernels = _kernels(compiled, choice, arrays, count, version)
    say(f"Kernels: {kernels.note if kernels else 'not timed on gpu'}")
    print("\n".join(timing.report_lines(calls, kernels, model.batch, version)))
    return 0


def _kernels(
    compiled: Any, choice: Choice, arrays: Sequence[np.ndarray], count: int, version: Numbering
) -> timing.Kernels | None:
    if choice.target == "ref":
        return timing.instruction_times(compiled, arrays, count, version)
    if choice.target == "cpu":
        from mgx_mlir.core.machine import available_cpus

        threads = choice.threads or available_cpus()
        return timing.kernel_times(compiled, arrays, count, threads, version)
    return None
