"""perf --ort: a program's calls and onnxruntime's, timed in blocks, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.engine_times import EngineTimes, time_engines
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.model import Model

OURS, THEIRS = "mgx_mlir", "onnxruntime"
PERCENTILE = 95


@dataclass(frozen=True)
class BesideOnnxruntime:
    """Blocks of a program and of onnxruntime's session of the same file, on as many threads."""

    version: str
    threads: int
    times: EngineTimes

    def lines(self) -> list[str]:
        """Write the median of each, and their ratio or why there is none."""
        clock = " of CPU time" if self.times.clock == "cpu" else ""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        ours, theirs = (self.times.seconds(n) * 1e3 for n in (OURS, THEIRS))
        found = f"{ours:.4g}ms beside {theirs:.4g}ms of onnxruntime {self.version}"
        problem = self.times.problem(OURS, THEIRS)
        if problem is None:
            rounds = len(self.times.rounds)
            ratio = self.times.ratio(OURS, THEIRS)
            found += f", takes {ratio} of it by {rounds} blocks of each"
        else:
            found += f", no ratio: {problem}"
        return [f"Beside onnxruntime ({threads}, medians{clock}): {found}"]

    def json(self) -> dict[str, Any]:
        """Return the figures as a JSON object; docs/perf.md lists the keys."""
        ratio, problem = self.times.ratio(OURS, THEIRS), self.times.problem(OURS, THEIRS)
        return {
            "version": self.version,
            "threads": self.threads,
            "clock": self.times.clock,
            "onnxruntime_ms": self.times.seconds(THEIRS) * 1e3,
            "ms": self.times.seconds(OURS) * 1e3,
            "p95_ms": float(np.percentile(self.times.calls(OURS), PERCENTILE)) * 1e3,
            "ratio": None if problem else ratio.value,
            "low": None if problem else ratio.low,
            "high": None if problem else ratio.high,
            "problem": problem,
            "blocks": len(self.times.rounds),
            "disturbed_blocks": self.times.all_rounds - len(self.times.rounds),
        }


def check_beside(args: Arguments, model: Model, target: str) -> None:
    """Refuse `--ort` for targets and files that onnxruntime cannot run."""
    if "--ort" not in args:
        return
    if not model.is_onnx:
        raise UsageError(f"option '--ort' needs an ONNX model, got {model.name}")
    if target != "cpu":
        raise UsageError(f"option '--ort' is for --cpu, the target is {target}")


def time_beside(
    program: CompiledProgram, path: str, inputs: Mapping[str, np.ndarray], threads: int
) -> BesideOnnxruntime:
    """Time a program and onnxruntime on the same inputs. Errors: RunError, TargetError."""
    # a package that a user may not have
    from mgx_mlir.debug.onnxruntime import OnnxRuntimeSession

    session = OnnxRuntimeSession(path, threads=threads)
    given = dict(inputs)

    def ours() -> Sequence[Any]:
        return program.run(given)

    clock = "cpu" if threads == 1 else "wall"
    engines = {THEIRS: lambda: session.run(given), OURS: ours}
    return BesideOnnxruntime(session.version, threads, time_engines(engines, clock=clock))
