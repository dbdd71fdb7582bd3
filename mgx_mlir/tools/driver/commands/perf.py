"""perf: a model compiled, run many times, and its times."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.ref_program import RefProgram
from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.peaks import Peaks, machine_peaks
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.printers.instructions import Numbering
from mgx_mlir.tools.driver import timing
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.beside_onnxruntime import check_beside, time_beside
from mgx_mlir.tools.driver.call_times import time_callers, time_calls
from mgx_mlir.tools.driver.compile_model import compile_model, emit_compiled, limited_first_call
from mgx_mlir.tools.driver.emit import form_of
from mgx_mlir.tools.driver.input_data import allocate, check_files
from mgx_mlir.tools.driver.memory import PeakMemory
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, PERF, REPORTERS
from mgx_mlir.tools.driver.perf_report import (
    Memory,
    OtherRun,
    Performance,
    compare_runs,
    comparison_lines,
    memory_line,
    performance_json,
    rates_of,
    read_report,
    report_lines,
    table_lines,
)
from mgx_mlir.tools.driver.program_texts import write_file
from mgx_mlir.tools.driver.progress import say, step, working
from mgx_mlir.tools.driver.shown import input_uses
from mgx_mlir.tools.driver.target_choice import EMULATED, TargetChoice, choose_target
from mgx_mlir.tools.driver.trace_file import trace_bytes
from mgx_mlir.tools.driver.verify_report import write_json

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
Prints the compiled program, then each line with its time and share, a summary by kernel, and the
times of whole calls. A call goes from numpy arrays to numpy arrays; the first is not timed
(--warm-up N: the first N). Total time is the mean without the quickest and slowest quarter; Rate is
--batch per total time. On the CPU the times of kernels come from the runtime's own counters, in a
run of its own with the same number of threads: from the start of a kernel's first tile to the end
of its last. Where the backend split or joined kernels, the times go by its launches. On the GPU
only whole calls are timed. Overhead is what a call takes that computes nothing, of the same inputs
and outputs, and what a call takes beyond its kernels.

A table follows, the slowest kernel first, with the names of the model's nodes, the bytes that each
kernel reads and writes, its operations, what it reaches of both a second, and how much that is of
this machine's peaks, which are measured once and kept. Bytes count every operand and result once: a
kernel that reaches more than the peak of the memory has them in caches, and the table says so.

There are --iterations calls, and more until --duration seconds are over. --concurrency N also runs
N callers at once, and says how many calls a second all of them got.

--ort times onnxruntime too, on the same inputs and as many threads. Each engine runs in blocks of
its own, between which its threads go to sleep; the ratio is the median over blocks, with its 95 %
interval. Where other programs use the cores, or the interval is wider than a tenth to either side,
the report says so in place of a ratio.

--json prints the report as JSON, --trace writes one that Perfetto and Chrome show, --compare says
how this run compares with the --json report of another."""
OPTIONS = (*REPORTERS, *PERF, HELP)

SLOWER = 10.0  # percent of the other run's total that --compare allows


def run(args: Arguments) -> int:
    """Time the model, and print the report."""
    model = Model(args)
    report = "--json" in args
    if not report:
        form_of(args)
    other = _other(args)
    check_files(args)
    choice = choose_target(args, runs=True, model=model)
    check_beside(args, model, choice.target)
    version = args.get("--text-version", "seed")
    compiled = compile_model(args, model, choice)
    if not report:
        emit_compiled(args, model, choice, compiled)
        sys.stdout.write("\n")
    found = measure(args, model, choice, compiled, version)
    if not report:
        print("\n".join(_lines(found, version, detailed="--detailed" in args)))
    if "--trace" in args:
        write_file(args.get("--trace"), trace_bytes(found))
        say(f"Writing: {args.get('--trace')}")
    result = performance_json(found) if report else {}
    status = _compared(args, found, other, result) if other is not None else 0
    if report:
        write_json(args, result)
    return status


def measure(
    args: Arguments,
    model: Model,
    choice: TargetChoice,
    compiled: CompiledProgram,
    version: Numbering = "seed",
) -> Performance:
    """Time the calls and the kernels of a compiled model, as the options say. Errors: RunError."""
    count = args.get("--iterations", 100)
    inputs = allocate(args, model, compiled.signature, input_uses(args, compiled))
    arrays = compiled.signature.check_inputs(inputs)
    limited_first_call(compiled, arrays)
    with step("Running performance report ..."), PeakMemory() as peak:
        calls = time_calls(
            compiled,
            arrays,
            count,
            warm_up=args.get("--warm-up", 1),
            seconds=args.get("--duration", 0.0),
        )
    load_s = compiled.stats.load_s
    if load_s is not None:
        say(f"Loaded in {load_s:.2f} s")
    say(f"Calls: {len(calls.times)}, from numpy arrays to numpy arrays")
    callers = args.get("--concurrency", 1)
    together = None
    if callers > 1:
        with step(f"Running {callers} callers at once ..."):
            together = time_callers(compiled, arrays, len(calls.times), callers)
    if choice.emulate:
        say(EMULATED)
    threads = compiled.thread_count if choice.target == "cpu" else None
    with working("Timing kernels"):
        kernels = _kernels(compiled, choice, arrays, count, version)
    say(f"Kernels: {kernels.note if kernels else 'not timed on gpu'}")
    peaks = dry_ms = None
    if threads is not None and kernels is not None:
        with working("Timing calls that compute nothing"):
            dry_ms = timing.dry_run(compiled, arrays, threads, count)
        with working("Measuring the machine's peaks"):
            peaks = _peaks(threads, kernels)
    executable = getattr(compiled, "executable", None)
    beside = None
    if "--ort" in args:
        assert model.path is not None
        threads_of_both = args.get("--threads") or available_cpus()
        with step("Timing onnxruntime beside it ..."):
            beside = time_beside(compiled, model.path, inputs, threads_of_both)
    memory = Memory(
        sum(a.nbytes for a in getattr(compiled, "params", {}).values()),
        dict(executable.plan) if executable is not None else {},
        peak.bytes,
    )
    return Performance(
        model.name,
        f"{choice.target}, emulated" if choice.emulate else choice.target,
        threads,
        model.batch,
        calls,
        kernels,
        peaks,
        memory,
        load_s,
        dry_ms,
        together,
        beside,
    )


def _peaks(threads: int, kernels: timing.Kernels) -> Peaks:
    """Return the machine's peaks; measure again where a kernel computes faster than that."""
    found = machine_peaks(threads)
    best = max((rates_of(line).gflop_s or 0.0 for line in kernels.timed), default=0.0)
    if best <= found.gflop_s:
        return found
    # something else was running when they were measured
    return machine_peaks(threads, least=found)


def _lines(found: Performance, version: Numbering, *, detailed: bool) -> list[str]:
    lines = report_lines(
        found.calls, found.kernels, found.batch, version, detailed=detailed, dry_ms=found.dry_ms
    )
    if found.together is not None:
        lines.append(found.together.line(found.batch))
    if found.beside is not None:
        lines += found.beside.lines()
    lines += ["", memory_line(found.memory)]
    if found.kernels is not None and found.kernels.timed:
        lines += ["", *table_lines(found.kernels, found.peaks)]
    return lines


def _other(args: Arguments) -> OtherRun | None:
    """Read the run to compare with, before anything that takes long."""
    if "--compare" in args:
        return read_report(args.get("--compare"))
    if "--threshold" in args:
        raise UsageError("option '--threshold' is for --compare")
    return None


def _compared(args: Arguments, found: Performance, other: OtherRun, result: dict[str, Any]) -> int:
    compared = compare_runs(found, other)
    allowed = 1 + args.get("--threshold", SLOWER) / 100
    slower = compared.ratio > allowed
    result["compared"] = {
        "with": args.get("--compare"), "ratio": compared.ratio, "allowed": allowed,
        "slower": slower,
        "kernels": [{"name": n, "ms": a, "other_ms": b} for n, a, b in compared.kernels],
    }  # fmt: skip
    verdict = f"{'slower' if slower else 'not slower'} than allowed ({allowed:.2f}x)"
    if "--json" not in args:
        print()
        print("\n".join(comparison_lines(compared, found, other, args.get("--compare"))))
        print(verdict[0].upper() + verdict[1:])
    return int(slower)


def _kernels(
    compiled: CompiledProgram,
    choice: TargetChoice,
    arrays: Sequence[np.ndarray],
    count: int,
    version: Numbering,
) -> timing.Kernels | None:
    if isinstance(compiled, RefProgram):
        return timing.instruction_times(compiled, arrays, count, version)
    if isinstance(compiled, IreeProgram) and choice.target == "cpu":
        threads = compiled.thread_count
        return timing.kernel_times(compiled, arrays, count, threads, version)
    return None
